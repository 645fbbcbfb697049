"""Generated weather as windows, as files, and kept on disk."""
