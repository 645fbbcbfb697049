"""Benches of the cell-free system."""
