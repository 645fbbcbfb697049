"""Pruning: score every weight, keep exactly k, look at what is left."""
