"""Readers of radio measurements as loggers, planning tools and spreadsheets write them."""
