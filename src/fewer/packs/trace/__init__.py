"""Programs from torch."""
