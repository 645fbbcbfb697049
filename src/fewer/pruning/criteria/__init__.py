"""Criteria: a score for every weight, larger is kept."""
