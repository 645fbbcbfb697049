"""Hostile clients, and what they cost."""
