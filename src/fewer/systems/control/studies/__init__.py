"""The control paper's tables and figures, and ours."""
