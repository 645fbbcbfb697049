"""The nowcast paper's tables and figures, and ours."""
