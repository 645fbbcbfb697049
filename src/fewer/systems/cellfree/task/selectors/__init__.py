"""Every way to choose access points, and the ceiling."""
