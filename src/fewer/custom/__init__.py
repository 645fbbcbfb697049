"""A user's own model, data or task, and the contract suite."""
