"""Formulas that more than one room needs."""
