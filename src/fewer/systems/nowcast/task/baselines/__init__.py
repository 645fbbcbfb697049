"""Forecasts that learn nothing or only count."""
