"""Baselines that see what a model sees. The task gives no radar image, so persistence needs a word.

Rain now is read off the last satellite image: cold cloud tops, and how far water vapour lies below them, tell how
often it rains 15 minutes later, by a table counted on training windows. `SatellitePersistence` says that for all lead
times; `SatelliteExtrapolation` lets the rain move with the clouds and its place become uncertain, from the whole
satellite domain into the radar's. With radar images at hand, `persistence` repeats the last one.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from fewer.core.data import batches
from fewer.core.task import Data
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.baselines.extrapolation import displacements
from fewer.systems.nowcast.task.baselines.motion import Field, carried, displacement
from fewer.systems.nowcast.task.scores.scores import wet
from fewer.systems.nowcast.task.windows import FACTOR, LEADS, REACH, Windows, center

__all__ = ["SatelliteExtrapolation", "SatellitePersistence", "persistence"]

_NAMES = [band.name for band in BANDS]
_WINDOW, _VAPOUR = _NAMES.index("IR_108"), _NAMES.index("WV_073")
_STEPS = 32  # rows and columns of the table
_LOW, _HIGH = -5.0, 3.0  # standard deviations
_PRIOR = 200.0  # pixels' worth of the common share in every cell
_PER_BATCH = 8
_SPREAD_KM_PER_MINUTE = 0.2  # how fast the place of rain under clouds becomes uncertain


def persistence(rate: Tensor, leads: int = LEADS, *, rain_mm_per_hour: float = 0.2) -> Tensor:
    """(batch, leads, height, width) from the last radar image (batch, height, width): 1 where it rains now."""
    return wet(rate, rain_mm_per_hour).float()[:, None].expand(-1, leads, -1, -1)


class SatellitePersistence:
    """Rain as the last image shows it, at every lead time: a `Predict`."""

    def __init__(self, data: Data[Windows], *, rain_mm_per_hour: float = 0.2, limit: int | None = 256) -> None:
        sums = torch.zeros(2, _STEPS * _STEPS, dtype=torch.float64)  # rain, seen
        for index in batches(data, _PER_BATCH, limit):
            batch = data.take(index)
            seen = batch.valid[:, 0] > 0
            raining = wet(batch.rate[:, 0], rain_mm_per_hour) & seen
            # a satellite pixel holds 36 radar pixels
            inside = center(batch.satellite.shape[-1])
            cell = self._cells(batch)[:, inside, inside].repeat_interleave(FACTOR, 1).repeat_interleave(FACTOR, 2)
            for total, part in zip(sums, (raining, seen)):
                total += torch.bincount(cell[part].cpu(), minlength=_STEPS * _STEPS)
        share = sums[0].sum() / sums[1].sum().clamp(min=1)
        self.table = ((sums[0] + _PRIOR * share) / (sums[1] + _PRIOR)).float()

    @staticmethod
    def _cells(batch: Windows) -> Tensor:
        """(batch, size, size): the table's cell of each pixel of the last image."""
        image = batch.satellite[:, -1]
        cold, above = image[:, _WINDOW], image[:, _WINDOW] - image[:, _VAPOUR]
        scaled = [(part - _LOW) / (_HIGH - _LOW) * _STEPS for part in (cold, above)]
        row, column = (part.long().clamp(0, _STEPS - 1) for part in scaled)
        return row * _STEPS + column

    def now(self, batch: Windows) -> Tensor:
        """(batch, size, size) on the satellite's grid: the probability of rain 15 minutes later."""
        return self.table.to(batch.satellite.device)[self._cells(batch)]

    def __call__(self, batch: Windows) -> Tensor:
        inside = center(batch.satellite.shape[-1])
        return _zoomed(self.now(batch)[:, None, inside, inside]).expand(-1, LEADS, -1, -1)


class SatelliteExtrapolation(SatellitePersistence):
    """Rain as the last image shows it, moving with the clouds."""

    def __call__(self, batch: Windows) -> Tensor:
        now = self.now(batch).cpu().numpy()
        images = (1 - batch.satellite[:, -2:, _WINDOW]).clamp(min=0).cpu().numpy()  # cold tops are high numbers
        known = (batch.missing[:, -2:] == 0).cpu().numpy()
        found = []
        inside, size = center(now.shape[-1]), now.shape[-1]
        low, high = max(inside.start - REACH, 0), min(inside.stop + REACH, size)
        middle = slice(inside.start - low, inside.stop - low)
        for first, pair, seen in zip(now, images, known):
            moving = displacement(pair, seen, window=6.0)[:, low:high, low:high]
            first = first[low:high, low:high]
            ahead = [carried(first, travelled) for travelled in displacements(moving, LEADS)]
            ahead = [_spread(one, lead, 15.0, 2.0 * FACTOR) for lead, one in enumerate(ahead)]
            found.append(np.stack(ahead)[:, middle, middle])
        return _zoomed(torch.from_numpy(np.stack(found)).to(batch.satellite))


def _spread(field: Field, steps: int, step_minutes: float, pixel_km: float) -> Field:
    """The field blurred as far as its place is uncertain after that many steps."""
    from scipy.ndimage import gaussian_filter

    width = _SPREAD_KM_PER_MINUTE * step_minutes * steps / pixel_km
    blurred: Field = gaussian_filter(field, width, mode="nearest", truncate=3) if width > 0 else field
    return blurred


def _zoomed(field: Tensor) -> Tensor:
    """(batch, maps, rows, columns) of the satellite at the radar's pixels."""
    return interpolate(field, scale_factor=FACTOR, mode="bilinear", align_corners=False)
