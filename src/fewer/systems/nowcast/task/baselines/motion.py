"""How rain moves: a smooth displacement of every pixel between successive images, coarse to fine.

At each level of a pyramid two successive images are carried half a step towards each other, and Lucas and Kanade's
least squares, weighted by a Gaussian window around every pixel, tell how far they are still apart. Where there is
little to see the answer is drawn from where there is more. Pixels without data weigh nothing; large differences, rain
that grew or died rather than moved, weigh less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError

__all__ = ["Field", "carried", "displacement", "finer", "motion", "smooth_motion"]

Field = NDArray[np.floating[Any]]

_LEVELS = 4  # halvings: motion of some twenty pixels a step is found
_ROUNDS = 3
_PIXEL_KM, _WINDOW_KM = 4.0, 24.0  # of `smooth_motion`
_WINDOW = 12.0  # pixels at full resolution, standard deviation of the Gaussian
_SMALLEST = 3.0  # the same at coarse levels
_RIDGE = 0.02  # of the mean squared gradient: keeps empty places from dividing by nothing
_FAINT_MM_PER_HOUR = 0.1


def motion(
    rates: NDArray[np.floating[Any]], *, window: float = _WINDOW, steps: Sequence[float] | None = None
) -> Field:  # fmt: skip
    """(2, height, width): rows and columns that rain moves in one step, from two or more images (time, height, width).

    Rates in mm/h, NaN where nothing is known. All successive pairs are used together, as if the motion were steady;
    `steps` tells how many steps lie between the two of each pair where that is not one.
    """
    if rates.ndim != 3 or len(rates) < 2:
        raise UserError(f"images of shape {rates.shape}", "(time, height, width) with two or more times")
    known = np.isfinite(rates)
    # logarithms: a shower ten times as strong should not count a hundred times
    strength = np.log1p(np.clip(np.where(known, rates, 0), 0, None) / _FAINT_MM_PER_HOUR).astype(np.float32)
    return displacement(strength, known, window=window, steps=steps)


def smooth_motion(rates: NDArray[np.floating[Any]], pixel_km: float, steps: Sequence[float] | None = None) -> Field:
    """The same as `motion`, found on pixels of about 4 km: motion is smooth, and this is several times quicker."""
    factor = max(round(_PIXEL_KM / pixel_km), 1)
    if factor == 1 or min(rates.shape[1:]) < 8 * factor:
        return motion(rates, steps=steps)
    height, width = (length - length % factor for length in rates.shape[1:])
    blocks = np.asarray(rates, np.float32)[:, :height, :width]
    blocks = blocks.reshape(len(rates), height // factor, factor, width // factor, factor)
    known = np.isfinite(blocks).sum((2, 4))
    means = np.where(2 * known >= factor**2, np.nansum(blocks, (2, 4)) / np.maximum(known, 1), np.nan)
    found = motion(means, window=_WINDOW_KM / (pixel_km * factor), steps=steps)
    return finer(found * np.float32(factor), rates.shape[1:], factor, offset=(factor - 1) / 2)


def finer(field: Field, shape: tuple[int, ...], factor: int, *, offset: float = 0.0) -> Field:
    """(parts, rows, columns), of which the first lies at `offset` and the next `factor` further, at every pixel."""
    for axis, length in enumerate(shape, 1):
        place = np.clip((np.arange(length, dtype=np.float32) - offset) / factor, 0, field.shape[axis] - 1)
        lower = np.minimum(place.astype(np.int32), max(field.shape[axis] - 2, 0))
        share = (place - lower).reshape((-1, 1) if axis == 1 else (1, -1))
        upper = np.minimum(lower + 1, field.shape[axis] - 1)
        field = field.take(lower, axis) * (1 - share) + field.take(upper, axis) * share
    return field


def displacement(
    strength: Field, known: NDArray[np.bool_], *, window: float = _WINDOW, steps: Sequence[float] | None = None
) -> Field:
    """The same for anything that moves: differences of about 1 are large."""
    apart = [1.0] * (len(strength) - 1) if steps is None else list(steps)
    levels = [([_blurred(image, 1.0) for image in strength], list(known.astype(np.float32)))]
    for _ in range(_LEVELS - 1):
        levels.append(tuple([_halved(image) for image in part] for part in levels[-1]))  # type: ignore[arg-type]
    found = np.zeros((2, *levels[-1][0][0].shape), np.float32)
    for depth, (images, seen) in reversed(list(enumerate(levels))):
        if found.shape[1:] != images[0].shape:
            found = 2 * _doubled(found, images[0].shape)
        for _ in range(_ROUNDS):
            found = _refined(found, list(zip(images, seen)), apart, max(window / 2**depth, _SMALLEST))
    return found


def carried(field: Field, displacement: Field, outside: float | None = None) -> Field:
    """The field as it looks after moving: each pixel takes what lies `displacement` behind it, linearly between pixels.

    Beyond the edge lies `outside`, or the edge itself if None.
    """
    from scipy.ndimage import map_coordinates

    rows, columns = np.indices(field.shape, dtype=np.float32)
    points = np.stack([rows - displacement[0], columns - displacement[1]])
    mode, value = ("nearest", 0.0) if outside is None else ("constant", outside)
    taken: Field = map_coordinates(field, points, order=1, mode=mode, cval=value, prefilter=False)
    return taken


def _refined(found: Field, images: Sequence[tuple[Field, Field]], steps: Sequence[float], window: float) -> Field:
    """One round: what is left between the images, solved for and smoothed where it is least certain."""
    sums = np.zeros((5, *found.shape[1:]), np.float32)
    for (first, first_seen), (second, second_seen), step in zip(images, images[1:], steps):
        half = found * np.float32(step / 2)
        before, after = carried(first, half), carried(second, -half)
        weight = carried(first_seen, half) * carried(second_seen, -half)
        apart = after - before
        weight = weight / (1 + apart**2)
        slopes = np.gradient((before + after) / 2)
        down, across = np.float32(step) * slopes[0], np.float32(step) * slopes[1]
        for total, product in zip(sums, (down**2, down * across, across**2, down * apart, across * apart)):
            total += weight * product
    # per pixel: [[yy, yx], [yx, xx]] step = -[yt, xt]
    yy, yx, xx, yt, xt = (_blurred(total, window) for total in sums)
    ridge = _RIDGE * float((yy + xx).mean()) + 1e-6
    sure = np.sqrt(np.clip(yy * xx - yx**2, 0, None))
    yy, xx = yy + ridge, xx + ridge
    further = -np.stack([xx * yt - yx * xt, yy * xt - yx * yt]) / (yy * xx - yx**2)
    found = found + np.clip(further, -2, 2)  # a linearisation is good for a pixel or two
    trust = sure / (sure + 0.1 * float(sure.mean()) + 1e-9) + 1e-3
    whole = _blurred(trust, window)
    smooth: Field = np.stack([_blurred(part * trust, window) / whole for part in found]).astype(np.float32)
    return smooth


def _blurred(field: Field, width: float) -> Field:
    from scipy.ndimage import gaussian_filter

    out: Field = gaussian_filter(field, width, mode="nearest", truncate=3)
    return out


def _halved(field: Field) -> Field:
    height, width = field.shape
    even = np.pad(field, ((0, height % 2), (0, width % 2)), mode="edge")
    halved: Field = even.reshape(even.shape[0] // 2, 2, even.shape[1] // 2, 2).mean((1, 3), dtype=np.float32)
    return halved


def _doubled(field: Field, shape: tuple[int, ...]) -> Field:
    from scipy.ndimage import zoom

    height, width = shape
    parts = [zoom(part, 2, order=1, grid_mode=True, mode="nearest")[:height, :width] for part in field]
    return np.stack(parts)
