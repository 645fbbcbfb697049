"""The vision paper's tables and figures, and ours."""
