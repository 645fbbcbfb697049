"""Programs run with numpy and C alone."""
