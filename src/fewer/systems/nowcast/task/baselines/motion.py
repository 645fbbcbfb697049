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

__all__ = ["Field", "carried", "displacement", "motion"]

Field = NDArray[np.floating[Any]]

_LEVELS = 4  # halvings: motion of some twenty pixels a step is found
_ROUNDS = 3
_WINDOW = 12.0  # pixels at full resolution, standard deviation of the Gaussian
_SMALLEST = 3.0  # the same at coarse levels
_RIDGE = 0.02  # of the mean squared gradient: keeps empty places from dividing by nothing
_FAINT_MM_PER_HOUR = 0.1


def motion(rates: NDArray[np.floating[Any]], *, window: float = _WINDOW) -> Field:
    """(2, height, width): rows and columns that rain moves in one step, from two or more images (time, height, width).

    Rates in mm/h, NaN where nothing is known. All successive pairs are used together, as if the motion were steady.
    """
    if rates.ndim != 3 or len(rates) < 2:
        raise UserError(f"images of shape {rates.shape}", "(time, height, width) with two or more times")
    known = np.isfinite(rates)
    # logarithms: a shower ten times as strong should not count a hundred times
    strength = np.log1p(np.clip(np.where(known, rates, 0), 0, None) / _FAINT_MM_PER_HOUR).astype(np.float32)
    return displacement(strength, known, window=window)


def displacement(strength: Field, known: NDArray[np.bool_], *, window: float = _WINDOW) -> Field:
    """The same for anything that moves: differences of about 1 are large."""
    levels = [([_blurred(image, 1.0) for image in strength], list(known.astype(np.float32)))]
    for _ in range(_LEVELS - 1):
        levels.append(tuple([_halved(image) for image in part] for part in levels[-1]))  # type: ignore[arg-type]
    found = np.zeros((2, *levels[-1][0][0].shape), np.float32)
    for depth, (images, seen) in reversed(list(enumerate(levels))):
        if found.shape[1:] != images[0].shape:
            found = 2 * _doubled(found, images[0].shape)
        for _ in range(_ROUNDS):
            found = _refined(found, images, seen, max(window / 2**depth, _SMALLEST))
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


def _refined(found: Field, images: Sequence[Field], seen: Sequence[Field], window: float) -> Field:
    """One round: what is left between the images, solved for and smoothed where it is least certain."""
    sums = np.zeros((5, *found.shape[1:]), np.float32)
    for k in range(len(images) - 1):
        before, after = carried(images[k], found / 2), carried(images[k + 1], -found / 2)
        weight = carried(seen[k], found / 2) * carried(seen[k + 1], -found / 2)
        apart = after - before
        weight = weight / (1 + apart**2)
        down, across = np.gradient((before + after) / 2)
        for total, product in zip(sums, (down**2, down * across, across**2, down * apart, across * apart)):
            total += weight * product
    # per pixel: [[yy, yx], [yx, xx]] step = -[yt, xt]
    yy, yx, xx, yt, xt = (_blurred(total, window) for total in sums)
    ridge = _RIDGE * float((yy + xx).mean()) + 1e-6
    sure = np.sqrt(np.clip(yy * xx - yx**2, 0, None))
    yy, xx = yy + ridge, xx + ridge
    step = -np.stack([xx * yt - yx * xt, yy * xt - yx * yt]) / (yy * xx - yx**2)
    found = found + np.clip(step, -2, 2)  # a linearisation is good for a pixel or two
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
