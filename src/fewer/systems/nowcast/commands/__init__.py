"""Verbs of the nowcast system."""
