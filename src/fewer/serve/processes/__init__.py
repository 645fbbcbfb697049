"""Processes that answer: how they are started, replaced, and brought to an end without losing a request."""
