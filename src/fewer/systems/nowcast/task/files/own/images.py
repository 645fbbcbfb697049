"""Images in time's order on one grid: what every reader makes, and what forecasts, training and pictures begin with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.own.grid import Grid
from fewer.systems.nowcast.task.files.own.quantities import RAIN

__all__ = ["Channel", "Frame", "Images", "assembled"]

_NEAR = 0.2  # of a step: an image this far from its time still counts as on time


class Channel(NamedTuple):
    """A band by name, with its units."""

    name: str
    units: str


class Frame(NamedTuple):
    """One image."""

    values: NDArray[np.float32]  # (channels, y, x), y from north to south, NaN where nothing was measured
    time: np.datetime64  # in seconds
    channels: tuple[Channel, ...]
    grid: Grid
    file: str


@dataclass(frozen=True)
class Images:
    """A sequence."""

    values: NDArray[np.float32]  # (time, channels, y, x)
    times: NDArray[np.datetime64]  # (time,) in seconds, rising
    channels: tuple[Channel, ...]
    grid: Grid
    timed: bool = True  # False: only the steps between images are known, not when they were taken

    @property
    def minutes(self) -> NDArray[np.float64]:
        """Since the first."""
        since: NDArray[np.float64] = (self.times - self.times[0]).astype("timedelta64[s]").astype(np.float64) / 60.0
        return since

    @property
    def step_minutes(self) -> float:
        """The commonest step between images, the shorter of equals; 0 of a single image."""
        if len(self.times) < 2:
            return 0.0
        steps, counts = np.unique(np.round(np.diff(self.minutes), 3), return_counts=True)
        return float(steps[counts.argmax()])

    @property
    def is_rain(self) -> bool:
        return self.channels == (Channel(*RAIN),)

    @property
    def rates(self) -> NDArray[np.float32]:
        """(time, y, x) in mm/h, of images that are rain."""
        if not self.is_rain:
            raise UserError(f"bands {', '.join(one.name for one in self.channels)}", "rain rates of a radar")
        return self.values[:, 0]

    @property
    def seen(self) -> float:
        """The share of pixels at which anything was measured."""
        return float(np.isfinite(self.values).any(1).mean())

    def coarser(self, factor: int) -> Images:
        """Means over blocks of which at least half was measured."""
        if factor == 1:
            return self
        return dataclasses.replace(self, values=coarser(self.values, factor), grid=self.grid.coarser(factor))

    def on_time(self) -> tuple[NDArray[np.int64], list[str]]:
        """For each regular time from the first to the last the image nearest to it, -1 where it is missing; remarks."""
        step, minutes = self.step_minutes, self.minutes
        if not step:
            return np.zeros(1, np.int64), []
        slots = np.arange(0.0, minutes[-1] + step / 2, step)
        nearest = np.abs(minutes[None] - slots[:, None]).argmin(1)
        late = np.abs(minutes[nearest] - slots) > _NEAR * step
        chosen = np.where(late, -1, nearest)
        remarks = []
        if late.any():
            remarks.append(f"{int(late.sum())} of {len(slots)} images missing at a step of {step:g} minutes")
        off = len(minutes) - len(np.unique(chosen[chosen >= 0]))
        if off:
            remarks.append(f"{off} images between the steps of {step:g} minutes")
        return chosen, remarks


def coarser(values: NDArray[np.float32], factor: int) -> NDArray[np.float32]:
    """(..., y, x) by means over blocks of which at least half is known; what is left over at the edges falls away."""
    *front, height, width = values.shape
    height, width = height - height % factor, width - width % factor
    blocks = values[..., :height, :width].reshape(*front, height // factor, factor, width // factor, factor)
    known = np.isfinite(blocks).sum((-3, -1))
    sums = np.nansum(blocks, (-3, -1))
    found: NDArray[np.float32] = np.where(2 * known >= factor**2, sums / np.maximum(known, 1), np.nan)
    return found.astype(np.float32)


def assembled(frames: Sequence[Frame], *, timed: bool = True) -> Images:
    """In time's order; frames of other grids, other bands or one time twice are refused."""
    ordered = sorted(frames, key=lambda one: one.time)
    first = ordered[0]
    for before, one in zip([None, *ordered], ordered):
        if not one.grid.same_as(first.grid):
            raise UserError(
                f"{one.file} of {_described(one.grid)}", f"{_described(first.grid)} as in {first.file}",
                "one domain at a time",
            )  # fmt: skip
        if one.channels != first.channels:
            named, expected = (", ".join(part.name for part in each.channels) for each in (one, first))
            raise UserError(f"{one.file} with {named}", f"{expected} as in {first.file}", "name one with --variable")
        if before is not None and before.time == one.time:
            raise UserError(
                f"{before.file} and {one.file}: two images of one time, {one.time}", "each time once",
                "one product at a time",
            )  # fmt: skip
    times = np.array([one.time for one in ordered], "datetime64[s]")
    return Images(np.stack([one.values for one in ordered]), times, first.channels, first.grid, timed)


def _described(grid: Grid) -> str:
    rows, columns = grid.shape
    return f"{rows} x {columns} pixels of {grid.kilometres:.3g} km"
