"""Measurements of one machine, and models that say what more of them would do."""
