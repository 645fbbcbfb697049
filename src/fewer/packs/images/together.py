"""How many images pass through convolutions together.

Small images leave registers empty when each passes alone, and read all weights for few places; large ones leave the
cache when several pass together. The numbers below fit ResNet-18, VGG-16 and a MobileNet-like network on AMD's family
26 (Zen 5), 1 to 8 images at densities of 0.05 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from fewer.packs.images.choice import cost
from fewer.packs.images.layout import Layout, phases_of
from fewer.packs.images.operations import Convolution, Operation

__all__ = ["images_together"]

_CHOICES = (1, 2, 4, 8)
_CACHE, _MISSED = 150_000, 0.4  # numbers that stay in the second-level cache, and what each costs where more do not
_WORTH = 0.97  # several images have to cost this much less


def images_together(operations: Sequence[Operation], layout: Layout) -> int:
    """The number with the smallest cost for each image."""
    convolutions = [one for one in operations if isinstance(one, Convolution)]
    costs = {images: _cost(convolutions, layout, images) / images for images in _CHOICES}
    best = min(costs.values())
    return next(images for images, cost in costs.items() if cost * _WORTH <= best)


def _cost(convolutions: Sequence[Convolution], layout: Layout, images: int) -> float:
    geometries, whole = layout.geometries(images), 0.0
    for one in convolutions:
        geometry = geometries[one.target]
        room = geometry.channel * (layout.channels[one.target] + layout.channels[phases_of(one)])
        least, _ = cost(one, layout.sizes[one.target], geometry)
        whole += least + (_MISSED * room if room > _CACHE else 0.0)
    return whole
