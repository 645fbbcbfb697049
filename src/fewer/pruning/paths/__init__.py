"""What a mask leaves of the paths from inputs to outputs."""
