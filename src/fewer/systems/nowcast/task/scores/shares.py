"""How much of a window is wet, hour by hour, as forecast and as it fell, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["A_HOUR", "remark", "wet_shares"]

A_HOUR = 4  # lead times: they are 15 minutes apart
_APART = 0.005  # shares nearer than this are the same in percent


def wet_shares(rain: NDArray[Any], valid: NDArray[Any]) -> list[float]:
    """Of the area in sight of a radar, what is wet at the end of each hour; fields are (leads, height, width)."""
    seen = valid[A_HOUR - 1 :: A_HOUR] > 0
    wet = (rain[A_HOUR - 1 :: A_HOUR] > 0) & seen
    found: list[float] = (wet.sum((1, 2)) / np.maximum(seen.sum((1, 2)), 1)).tolist()
    return found


def remark(forecast: Sequence[float], observed: Sequence[float]) -> str:
    """Forecast and fallen shares side by side, and at how many hours there is too much or too little rain."""
    more = sum(said - fell > _APART for said, fell in zip(forecast, observed))
    less = sum(fell - said > _APART for said, fell in zip(forecast, observed))
    return (
        f"{_said(forecast)}; it fell on {_percent(observed)}: too much area at {more} and too little at {less} "
        f"of {len(observed)} hours."
    )


def _said(forecast: Sequence[float]) -> str:
    if min(forecast) > 1 - _APART:
        return "The forecast says rain everywhere at every hour"
    if max(forecast) < _APART:
        return "The forecast says no rain anywhere at any hour"
    return f"The forecast says rain on {_percent(forecast)} of the area hour by hour"


def _percent(shares: Sequence[float]) -> str:
    return ", ".join(f"{100 * share:.0f}" for share in shares) + " %"
