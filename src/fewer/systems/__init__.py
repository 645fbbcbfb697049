"""One folder for each field, and everything about it."""
