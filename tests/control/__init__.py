"""Policies from logged data."""
