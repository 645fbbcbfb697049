"""Benches of the control system."""
