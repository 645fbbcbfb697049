"""Offline algorithms, their networks, and fitted Q evaluation."""
