"""Bands as a network sees them: about 0 on average and 1 across, by what they measure; a missing pixel is 0.

The scale follows from a band's name or units alone, so that a model sees the same numbers wherever it is used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.files.own.images import Channel
from fewer.systems.nowcast.task.files.own.quantities import RAIN

__all__ = ["standardised"]

_BY_NAME = {band.name: (band.mean, band.deviation) for band in BANDS}
_BY_UNITS = {
    "K": (260.0, 20.0), "kelvin": (260.0, 20.0), "degC": (-13.0, 20.0), "celsius": (-13.0, 20.0),
    "1": (0.1, 0.15), "": (0.1, 0.15), "%": (10.0, 15.0), "percent": (10.0, 15.0), "dBZ": (5.0, 15.0),
}  # fmt: skip
_FAINT_MM_PER_HOUR, _USUAL_RAIN = 0.1, 0.5


def standardised(
    values: NDArray[np.float32], channels: tuple[Channel, ...]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """(channels, y, x) of images, and (y, x) where any channel was missing."""
    found = np.empty_like(values)
    for k, channel in enumerate(channels):
        found[k] = _one(values[k], channel)
    missing = np.asarray(~np.isfinite(values).all(axis=0))
    found[~np.isfinite(found)] = 0.0
    return found, missing


def _one(values: NDArray[np.float32], channel: Channel) -> NDArray[np.float32]:
    if channel == Channel(*RAIN):
        # rates span three decades; dry is not 0, which is what a missing pixel is
        logarithm: NDArray[np.float32] = np.log1p(values / np.float32(_FAINT_MM_PER_HOUR)) - np.float32(_USUAL_RAIN)
        return logarithm
    scale = _BY_NAME.get(channel.name) or _BY_UNITS.get(channel.units.strip())
    if scale is None:
        known = ", ".join(repr(units) for units in _BY_UNITS if units)
        raise UserError(f"band {channel.name} in {channel.units!r}", f"one of {known} or mm/h")
    scaled: NDArray[np.float32] = (values - np.float32(scale[0])) / np.float32(scale[1])
    return scaled
