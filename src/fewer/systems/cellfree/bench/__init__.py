"""Benches of the cellfree system."""
