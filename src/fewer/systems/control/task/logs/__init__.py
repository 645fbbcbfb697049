"""Logged experience: formats, checks, experts."""
