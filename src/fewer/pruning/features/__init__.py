"""Whole features instead of single weights: how useful each is, and networks without the least useful."""
