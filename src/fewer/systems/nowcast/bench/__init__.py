"""Benches of the nowcast system."""
