"""Timings of this project against what a user would pick instead, as ratios of one run."""
