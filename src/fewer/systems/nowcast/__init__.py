"""Eight hours of rain at 2 km from one hour of satellite images at 12 km."""
