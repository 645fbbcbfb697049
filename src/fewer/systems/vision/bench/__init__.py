"""Benches of the vision system."""
