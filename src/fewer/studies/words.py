"""How remarks list and count."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["between", "listed"]


def listed(items: Iterable[object], none: str = "none") -> str:
    """`a`, `a and b`, `a, b and c`."""
    words = [str(item) for item in items]
    return none if not words else words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def between(values: Iterable[float], shape: str = ".1f") -> str:
    """From the least to the greatest, or the one value that all are as it is written."""
    ordered = sorted(values)
    low, high = (f"{ordered[place]:{shape}}" for place in (0, -1))
    return low if low == high else f"{low} to {high}"
