"""The page of this system."""
