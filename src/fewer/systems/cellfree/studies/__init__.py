"""The cell-free paper's statistics and figures, and ours."""
