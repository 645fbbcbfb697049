"""Returns of several seeds as a few honest numbers: mean, median, interquartile mean, bootstrap interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["interquartile_mean", "statistics"]

_RESAMPLES = 10_000


def interquartile_mean(values: ArrayLike) -> float:
    """The mean of the middle half; values on its edges count by the part of them that lies inside."""
    ordered = np.sort(np.asarray(values, dtype=np.float64).ravel())
    count = len(ordered)
    # value i fills (i, i + 1) of the line from 0 to count; the middle half is from count / 4 to 3 count / 4
    inside = np.minimum(np.arange(1, count + 1), 0.75 * count) - np.maximum(np.arange(count), 0.25 * count)
    weights = np.clip(inside, 0.0, 1.0)
    return float((weights * ordered).sum() / weights.sum())


def statistics(scores: Sequence[float] | ArrayLike, *, level: float = 0.95, seed: int = 0) -> dict[str, float]:
    """Over seeds (axis 0; any further axes are averaged first); `low` and `high` bound the mean, by percentiles."""
    values = np.asarray(scores, dtype=np.float64)
    values = values.reshape(len(values), -1).mean(axis=1)
    drawn = np.random.default_rng(seed).integers(0, len(values), (_RESAMPLES, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return {
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "interquartile_mean": interquartile_mean(values),
        "low": float(low),
        "high": float(high),
    }
