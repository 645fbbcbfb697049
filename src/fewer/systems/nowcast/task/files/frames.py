"""From raw pixels to what a model sees: outliers and codes become masks, never numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.systems.nowcast.task.bands import BANDS

__all__ = ["DRY", "LARGEST", "UNSEEN", "prepared_rain", "prepared_satellite"]

UNSEEN = -9999000.0  # no radar covers the pixel
DRY = -8888000.0  # a radar looked and found nothing
LARGEST = 128.0  # mm/h; more is no rain
_COLDEST = 100.0  # K; no cloud top on Earth comes near, but resampling at the edge of a gap does

Floats = NDArray[np.float32]
Marks = NDArray[np.bool_]
_MEANS = np.array([band.mean for band in BANDS], dtype=np.float32)[:, None, None]
_DEVIATIONS = np.array([band.deviation for band in BANDS], dtype=np.float32)[:, None, None]
_HIGHEST = np.array([band.highest for band in BANDS], dtype=np.float32)[:, None, None]
_LOWEST = np.array([-1e30 if band.reflectance else _COLDEST for band in BANDS], dtype=np.float32)[:, None, None]


def prepared_satellite(raw: NDArray[Any], *, literal: bool = False) -> tuple[Floats, Marks]:
    """Standardised bands (11, y, x), and where any band was missing (y, x).

    A missing value becomes the band's mean, 0. `literal` does as the competition's starter kit did, which put 0 K
    there, about 14 deviations below the mean; the mask is the same.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values: Floats = raw.astype(np.float32)  # a copy, worked on in place: this is most of what reading costs
        absent = ~((values >= _LOWEST) & (values < np.inf))  # NaN compares to nothing
        if literal:
            values[~np.isfinite(values)] = 0
        np.clip(values, np.float32(0), _HIGHEST, out=values)
        values -= _MEANS
        values /= _DEVIATIONS
    if not literal and absent.any():
        values[absent] = 0
    return values, np.asarray(absent.any(axis=0))


def prepared_rain(raw: NDArray[Any]) -> tuple[Floats, Marks]:
    """Rate in mm/h, 0 where dry or unseen, and where a radar looked."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = raw.astype(np.float32)
        seen = np.isfinite(values) & (values != UNSEEN) & (values <= LARGEST)
        rate = np.where(seen, np.maximum(values, np.float32(0)), np.float32(0))
    return rate, seen
