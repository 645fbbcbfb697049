"""Requests in JSON as arrays: short ones at once, long ones piece by piece."""
