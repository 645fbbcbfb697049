"""How what is seen and what is forecast fit together: in time, in the size of their pixels and in place."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import NoFiles, UserError
from fewer.systems.nowcast.task.files.own.images import Images

__all__ = ["between", "corner_of", "factor_of", "slots_of"]

_ALIGNED = 0.05  # of a pixel: how far the two grids may be from fitting into each other


def between(images: Images, share: tuple[float, float]) -> Images:
    """A part of its time."""
    if share == (0.0, 1.0):
        return images
    first, last = (round(part * len(images.times)) for part in share)
    if last - first < 1:
        raise NoFiles(f"{len(images.times)} images", "enough of them to be cut in three", "name events in a table")
    return dataclasses.replace(images, values=images.values[first:last], times=images.times[first:last])


def slots_of(images: Images, step: float, start: np.datetime64) -> NDArray[np.int64]:
    """The image at each regular time from `start` on, -1 where there is none."""
    if not step:
        return np.zeros(1, np.int64)
    minutes = (images.times - start) / np.timedelta64(1, "s") / 60.0
    slots = np.arange(0.0, float(minutes[-1]) + step / 2, step)
    if not len(slots):
        return np.full(0, -1, np.int64)
    nearest = np.abs(minutes[None] - slots[:, None]).argmin(1)
    return np.where(np.abs(minutes[nearest] - slots) <= 0.2 * step, nearest, -1)


def factor_of(seen: Images, truth: Images, name: str) -> int:
    """How many pixels of the truth are as long as one of what is seen."""
    if seen.grid is truth.grid:
        return 1
    ratio = seen.grid.pixel[0] / truth.grid.pixel[0]
    if round(ratio) < 1 or abs(ratio - round(ratio)) > 0.01 * ratio:
        sides = f"{seen.grid.kilometres:.3g} and {truth.grid.kilometres:.3g} km"
        raise UserError(f"{name}: pixels of {sides}", "the first a whole number of times the second", "resample")
    return round(ratio)


def corner_of(seen: Images, truth: Images, name: str) -> tuple[int, int]:
    """In pixels of the truth, from the first of what is seen; the grids have to fit into each other."""
    if seen.grid is truth.grid:
        return 0, 0
    if seen.grid.placed != truth.grid.placed or (seen.grid.placed and not _same_projection(seen, truth)):
        raise UserError(f"{name}: what is seen and what is forecast in two projections", "one", "resample one of them")
    factor, (across, down) = factor_of(seen, truth, name), truth.grid.pixel
    right = (truth.grid.x[0] - across / 2 - (seen.grid.x[0] - factor * across / 2)) / across
    below = ((seen.grid.y[0] + factor * down / 2) - (truth.grid.y[0] + down / 2)) / down
    found = round(below), round(right)
    if max(abs(below - found[0]), abs(right - found[1])) > _ALIGNED:
        raise UserError(
            f"{name}: grids {right % 1:.2f} and {below % 1:.2f} of a pixel apart", "grids that fit", "resample"
        )
    return found


def _same_projection(seen: Images, truth: Images) -> bool:
    from fewer.systems.nowcast.task.files.own.grid import coordinate_system

    if seen.grid.projection == truth.grid.projection:
        return True
    return bool(
        coordinate_system(seen.grid.projection).equals(coordinate_system(truth.grid.projection), ignore_axis_order=True)
    )
