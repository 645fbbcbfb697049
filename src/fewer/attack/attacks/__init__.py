"""Attacks, each a coroutine over rounds."""
