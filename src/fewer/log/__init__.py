"""Training as other tools watch it."""
