"""How many images pass through convolutions together.

Small images leave registers empty when each passes alone, and read all weights for few places; large ones leave the
cache when several pass together. The numbers below fit ResNet-18, VGG-16 and a MobileNet-like network on AMD's family
26 (Zen 5), 1 to 8 images at densities of 0.05 to 1.

Sixteen images may also lie side by side, each place a vector of them: no place between rows is computed, and no vector
crosses a line of the cache, for which there have to be many images and a cache that holds them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fewer.packs.images.choice import cost
from fewer.packs.images.layout import Layout, phases_of
from fewer.packs.images.operations import Convolution, Operation

__all__ = ["SIDE", "images_beside", "images_together"]

SIDE = 16  # images in a vector where they lie side by side

_CHOICES = (1, 2, 4, 8)
_CACHE, _MISSED = 150_000, 0.4  # numbers that stay in the second-level cache, and what each costs where more do not
# images side by side: a kept weight at a place of sixteen, and a number that does not stay in the cache; fitted to what
# a MobileNet-like network gains at densities of 0.05, 0.2 and 0.5, and the shipped `digits-9348` and `photos-pruned`
_KEPT_BESIDE, _MISSED_BESIDE = 2.6, 0.1
_WORTH = 0.97  # several images have to cost this much less


def images_together(operations: Sequence[Operation], layout: Layout) -> int:
    """The number with the smallest cost for each image."""
    convolutions = [one for one in operations if isinstance(one, Convolution)]
    costs = {images: _cost(convolutions, layout, images) / images for images in _CHOICES}
    best = min(costs.values())
    return next(images for images, cost in costs.items() if cost * _WORTH <= best)


def images_beside(operations: Sequence[Operation], layout: Layout, beside: Layout) -> int:
    """From how many images on it is faster to let sixteen pass side by side, whether or not all are there; 0: never."""
    convolutions = [one for one in operations if isinstance(one, Convolution)]
    images = images_together(operations, layout)
    behind, geometries = _cost(convolutions, layout, images) / images, beside.geometries(1)
    side = 0.0
    for one in convolutions:
        room = SIDE * sum(geometries[name].channel * beside.channels[name] for name in (one.source, one.target))
        side += _KEPT_BESIDE * np.count_nonzero(one.weight) * math.prod(beside.sizes[one.target])
        side += _MISSED_BESIDE * room if room > _CACHE else 0.0
    least = max(2, math.ceil(side / behind)) if behind else SIDE + 1
    return least if least <= SIDE else 0


def _cost(convolutions: Sequence[Convolution], layout: Layout, images: int) -> float:
    geometries, whole = layout.geometries(images), 0.0
    for one in convolutions:
        geometry = geometries[one.target]
        room = geometry.channel * (layout.channels[one.target] + layout.channels[phases_of(one)])
        least, _ = cost(one, layout.sizes[one.target], geometry)
        whole += least + (_MISSED * room if room > _CACHE else 0.0)
    return whole
