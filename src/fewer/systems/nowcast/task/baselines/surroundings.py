"""What is known of a parcel of air when its rain is forecast: rain around it at every scale, and how that changed.

Everything is computed once, at the time of the last image, on its grid; a forecast reads it where each pixel's air is
now. Scales are in kilometres, so radars of any pixel size look alike. Unknown pixels weigh nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.systems.nowcast.task.baselines.motion import Field, carried
from fewer.systems.nowcast.task.baselines.pace import SCALES_KM

__all__ = ["CHANNELS", "Reader", "strength", "surroundings"]

_AREAS_KM = (4.0, 16.0)
_CHANGES_KM = (2.0, 8.0, 32.0)
_BROAD_KM = 16.0
_FAINT_MM_PER_HOUR, _HEAVY_MM_PER_HOUR, _WET_MM_PER_HOUR = 0.1, 2.0, 0.2
CHANNELS = 1 + len(SCALES_KM) + 2 * len(_AREAS_KM) + len(_CHANGES_KM) + 3


def strength(rates: NDArray[np.floating[Any]]) -> Field:
    """Logarithms of rates from faint to heavy: about 0.7 at 0.1 mm/h, 2.4 at 1 and 4.6 at 10."""
    found: Field = np.log1p(np.clip(np.nan_to_num(rates), 0, None) / _FAINT_MM_PER_HOUR).astype(np.float32)
    return found


def surroundings(rates: NDArray[np.floating[Any]], moving: Field, pixel_km: float) -> Field:
    """(CHANNELS, height, width) from the last two images, (2, height, width) in mm/h, and the motion between them."""
    before, last = rates[-2], rates[-1]
    known = np.isfinite(last).astype(np.float32)
    now = strength(last)
    both = known * carried(np.isfinite(before).astype(np.float32), moving, 0.0)
    change = (now - carried(strength(before), moving)) * both
    heavy = np.log1p(np.nan_to_num(last).clip(0) / _HEAVY_MM_PER_HOUR).astype(np.float32)
    wet = (np.nan_to_num(last) >= _WET_MM_PER_HOUR).astype(np.float32)
    smooth = _Smoothing(known, pixel_km)
    found = [now, *(smooth(now, scale) for scale in SCALES_KM)]
    found += [smooth(field, scale) for field in (wet, heavy) for scale in _AREAS_KM]
    found += [smooth(change, scale) for scale in _CHANGES_KM]
    restless = smooth(np.abs(change), _BROAD_KM)
    whole = np.abs(change).sum() / max(float(now.sum()), 1.0)
    found += [restless, np.full_like(now, whole), smooth.known(_BROAD_KM)]
    return np.stack(found).astype(np.float32)


class _Smoothing:
    """Gaussian means over what is known, by one transform of each field."""

    def __init__(self, known: Field, pixel_km: float) -> None:
        from scipy.fft import next_fast_len, rfft2

        self._known, self._pixel_km = known, pixel_km
        beyond = int(3 * max(SCALES_KM) / pixel_km / 2)  # the edge's mirror image decides little further out
        self._shape = tuple(next_fast_len(length + min(beyond, length), real=True) for length in known.shape)
        rows, columns = np.fft.fftfreq(self._shape[0]), np.fft.rfftfreq(self._shape[1])
        self._square = (rows[:, None] ** 2 + columns**2).astype(np.float32)
        self._transform: tuple[int, Any] = (0, None)
        self._whole = rfft2(known, self._shape)
        self._shares: dict[float, Field] = {}

    def __call__(self, field: Field, scale_km: float) -> Field:
        from scipy.fft import rfft2

        if self._transform[0] != id(field):
            self._transform = id(field), rfft2(field * self._known, self._shape)
        mean: Field = self._blurred(self._transform[1], scale_km) / np.maximum(self.known(scale_km), 1e-3)
        return mean

    def known(self, scale_km: float) -> Field:
        """The share of the window that is known; what lies beyond the map is not."""
        if scale_km not in self._shares:
            self._shares[scale_km] = self._blurred(self._whole, scale_km)
        return self._shares[scale_km]

    def _blurred(self, transform: Any, scale_km: float) -> Field:
        from scipy.fft import irfft2

        width = scale_km / self._pixel_km
        window = np.exp(np.float32(-2 * np.pi**2 * width**2) * self._square)
        height, across = self._known.shape
        blurred: Field = irfft2(transform * window, self._shape)[:height, :across]
        return blurred


class Reader:
    """Reads (CHANNELS, height, width) where each pixel's air is now, linear in between, some pixels at a time."""

    def __init__(self, channels: Field) -> None:
        self.shape = channels.shape[1:]
        self._table = np.ascontiguousarray(channels.reshape(len(channels), -1).T)

    def __call__(self, displacement: Field, part: slice) -> tuple[Field, Field]:
        """(pixels, CHANNELS) of those pixels, counted row by row, and how far beyond the edge they came from."""
        height, width = self.shape
        pixels = np.arange(part.start, min(part.stop, height * width))
        rows = (pixels // width).astype(np.float32) - displacement[0].reshape(-1)[part]
        columns = (pixels % width).astype(np.float32) - displacement[1].reshape(-1)[part]
        inside = np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)
        beyond = np.hypot(rows - inside[0], columns - inside[1])
        top, left = (np.minimum(one.astype(np.int32), last) for one, last in zip(inside, (height - 2, width - 2)))
        down, across = (inside[0] - top)[:, None], (inside[1] - left)[:, None]
        first = top * width + left
        found = self._table.take(first, 0) * ((1 - down) * (1 - across))
        for step, share in ((1, (1 - down) * across), (width, down * (1 - across)), (width + 1, down * across)):
            found += self._table.take(first + step, 0) * share
        return found, beyond
