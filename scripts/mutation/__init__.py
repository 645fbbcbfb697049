"""Mutation testing: small wrong changes of the source, and whether a test notices each."""
