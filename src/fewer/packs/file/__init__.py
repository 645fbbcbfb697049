"""The bytes of a pack."""
