"""Forecasts that pieces left: recalled, decided, scored and combined."""
