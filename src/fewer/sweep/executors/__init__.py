"""Where units run: inline, in processes, on Ray."""

__all__ = ["PLACES"]

PLACES = ("processes", "ray", "inline")
