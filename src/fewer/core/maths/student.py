"""Student's t: how many standard errors from the mean an interval over a few seeds reaches."""

from __future__ import annotations

import functools
import math

__all__ = ["student_p", "student_t"]

_HALVINGS = 60  # of the angle: to the last bit of a float


@functools.cache
def student_t(freedom: int, level: float = 0.95) -> float:
    """The t for which a share `level` of Student's distribution lies within ±t, for `freedom` degrees of freedom."""
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        low, high = (angle, high) if _within(angle, freedom) < level else (low, angle)
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def student_p(t: float, freedom: int) -> float:
    """How often chance alone is at least that far from zero, on either side."""
    return 1.0 - _within(math.atan(abs(t) / math.sqrt(freedom)), freedom)


def _within(angle: float, freedom: int) -> float:
    """The share within ±t, where t = sqrt(freedom) tan(angle): Abramowitz and Stegun 26.7.3 and 26.7.4."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(odd, freedom - 1, 2):  # cosine to the power of 1, 3, ... or 0, 2, ..., up to freedom - 2
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
