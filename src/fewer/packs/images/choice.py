"""How a convolution is computed: from its kept weights where its source lies or on copies of it, or densely.

Each way has a cost in the time of one vector of sixteen products. The factors below are what layers of ResNet-18,
VGG-16 and a MobileNet-like network took at densities of 0.05 to 1 on a processor with AVX-512, the one for weights that
do not stay in the cache what they took on AMD's family 26; for other instructions the same ratio is assumed.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import numpy as np

from fewer.packs.images.layout import Geometry
from fewer.packs.images.operations import Convolution
from fewer.packs.runtime.ops import Array

__all__ = ["ROWS", "Way", "cost", "taps_at_once", "units", "way"]

ROWS = 8  # output channels whose weights lie side by side where C computes densely
_WIDE, _TILES = 16, 3  # floats in a vector, and vectors of places whose sums are held in dense products
_HALF, _HELD = 8, 12  # floats in a vector of kept weights' sums, and vectors that are held
_KEPT, _READ, _WRITE = 1.3, 3.0, 2.0  # a kept weight at a vector, reading it once for all that are held, and a result
_DENSE = 1.05  # a weight at a vector
_FAR, _STREAM = 200_000, 1.5  # numbers of weights that leave the second-level cache, and reading one of them again
_COPY = 1.5  # a run of places into a panel, and out of it
_NEAR, _PANEL = 6144, 4  # numbers of a panel for kept weights, and vectors of places in it at most
# on a panel: a kept weight at a vector, and reading it once for all vectors; copying a vector, and each run in it; and
# beginning a channel's sums anew
_KEPT_NEAR, _READ_NEAR, _COPY_NEAR, _RUN_NEAR, _BEGIN = 1.3, 1.2, 3.0, 1.0, 6.0
_SURE = 0.8  # panels have to cost this much less
_UNITS = {16: 1.0, 8: 1.02, 4: 1.05, 2: 1.2, 1: 1.4}  # runs, and what shorter ones cost beside the places they waste


class Way(enum.Enum):
    """What a convolution reads, and how many of its weights."""

    SPARSE = "kept weights where the source lies"
    PANEL = "kept weights on copies"
    DENSE = "all weights on copies"


def units(size: Sequence[int], geometry: Geometry) -> tuple[int, Array]:
    """The length of runs of neighbours that cover an image, and where each begins; the last of a row may overlap."""
    (depth, height, width), (plane, row, _) = size, geometry.steps
    if row == width:
        height, width, row = 1, height * width, plane
    if height == 1 and plane == width:
        depth, width = 1, depth * width
    lengths = [unit for unit in _UNITS if unit <= width]
    unit = min(lengths, key=lambda one: -(-width // one) * one * _UNITS[one])
    along = np.minimum(np.arange(-(-width // unit)) * unit, width - unit)
    starts = np.add.outer(np.add.outer(np.arange(depth) * plane, np.arange(height) * row), along)
    return unit, starts.reshape(-1).astype(np.uint32)


def _sparse_cost(kept: int, places: int, outputs: int) -> float:
    """Of kept weights at neighbouring places, those between rows among them."""
    vectors = -(-places // _HALF)
    passes = -(-vectors // _HELD)
    return kept * (_KEPT * vectors + _READ * passes) + _WRITE * outputs * vectors + _streamed(2 * kept, passes)


def _dense_cost(one: Convolution, unit: int, runs: int) -> float:
    """Of all weights at runs of places."""
    vectors, own, taps = -(-runs * unit // _WIDE), len(one.weight) // one.groups, math.prod(one.weight.shape[1:])
    products = _DENSE * -(-own // ROWS) * ROWS * taps * vectors
    copies = _COPY * (taps + own) * vectors * _WIDE / unit
    return one.groups * (products + copies) + _streamed(one.weight.size, -(-vectors // _TILES))


def _panel_cost(one: Convolution, unit: int, runs: int) -> float:
    """Of kept weights at copies of runs of places."""
    kept, taps = int(np.count_nonzero(one.weight)), int(np.count_nonzero(one.weight.any(axis=0)))
    vectors = -(-runs * unit // _WIDE)
    passes, parts = -(-vectors // _PANEL), -(-taps // taps_at_once(taps, vectors))
    sums = len(one.weight) * parts
    products = kept * (_KEPT_NEAR * vectors + _READ_NEAR * passes) + sums * _BEGIN * passes
    copies = (_COPY_NEAR + _RUN_NEAR * _WIDE / unit) * (taps + sums) * vectors
    return products + copies + _streamed(2 * kept, passes)


def taps_at_once(taps: int, vectors: int) -> int:
    """How many taps of so many vectors of places are copied to stay in the nearest cache, all parts alike."""
    parts = -(-taps * _WIDE * min(vectors, _PANEL) // _NEAR)
    return max(1, -(-taps // max(1, parts)))


def _streamed(numbers: int, passes: int) -> float:
    """Of weights that are read from afar in every pass, which is what several images at once save."""
    return _STREAM * numbers * passes if numbers > _FAR else 0.0


def cost(one: Convolution, size: Sequence[int], geometry: Geometry) -> tuple[float, Way]:
    """The smallest one, and whose it is."""
    places = geometry.count(size) + (geometry.images - 1) * geometry.image
    unit, starts = units(size, geometry)
    runs = len(starts) * geometry.images
    costs = {
        Way.SPARSE: _sparse_cost(int(np.count_nonzero(one.weight)), places, len(one.weight)),
        Way.DENSE: _dense_cost(one, unit, runs),
    }
    if one.groups == 1:
        costs[Way.PANEL] = _panel_cost(one, unit, runs) / _SURE
    best = min(costs, key=lambda way: costs[way])
    return costs[best], best


def way(one: Convolution, size: Sequence[int], geometry: Geometry) -> Way:
    """How it is computed."""
    return cost(one, size, geometry)[1]
