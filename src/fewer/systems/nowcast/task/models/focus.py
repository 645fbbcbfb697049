"""A model that knows the geometry: it looks around the square that the radar covers, forecasts at 12 km, and zooms.

The radar's square is the central sixth of the satellite's. A 2D U-Net works at the satellite's own resolution on twice
that square; around its third level lies the whole image at 48 km, aligned with it, for what will drift in.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.models.plane import POOLINGS, Plane, pair
from fewer.systems.nowcast.task.windows import SEEN, center

__all__ = ["Focus"]

_POOL = 4  # satellite pixels in one of the context's, as after two poolings


class Context(nn.Module):
    """The whole image at 48 km, seen at 96 km as well, cut to the window: (batch, features, window / 4, window / 4)."""

    def __init__(self, images: int, width: int, *, size: int, first: int, window: int) -> None:
        super().__init__()
        # whole context pixels before and after the window, an even number, enough to cover the image
        before, after = (-(-pixels // (2 * _POOL)) * 2 for pixels in (first, size - first - window))
        ends = before * _POOL - first, after * _POOL - (size - first - window)
        self.ends = (*ends, *ends)
        self.inside = slice(before, before + window // _POOL)
        self.near, self.far = pair(images, width), pair(width, 2 * width)
        self.out = pair(3 * width, 2 * width)

    def forward(self, images: Tensor) -> Tensor:
        near = self.near(functional.avg_pool2d(functional.pad(images, self.ends), _POOL))
        far = functional.interpolate(self.far(functional.max_pool2d(near, 2)), size=near.shape[2:], mode="bilinear")
        both = torch.cat([near, far], dim=1)
        return self.out(both[:, :, self.inside, self.inside])  # type: ignore[no-any-return]


class Focus(Plane):
    """(batch, channels, SEEN, size, size) to (batch, LEADS, size, size)."""

    def __init__(self, channels: int, size: int, width: int = 32, *, dropout: float = 0.1) -> None:
        inner, images = center(size), channels * SEEN
        count = inner.stop - inner.start
        window = -(-2 * count >> POOLINGS) << POOLINGS
        first = inner.start - (window - count) // 2
        context = Context(images, width, size=size, first=first, window=window)
        super().__init__(images, size, width, context=context, joining=2 * width, dropout=dropout)
        self.window = slice(first, first + window)
        self.edged = slice(inner.start - first - 1, inner.stop - first + 1)

    def forward(self, x: Tensor) -> Tensor:
        deepest = (self.window.stop - self.window.start) >> POOLINGS  # pixels along the last level
        if self.training and len(x) * deepest**2 == 1:
            raise UserError(
                f"batches of one sample of {self.size} pixels", "two values a channel for focus to normalise by",
                "--batch 2 or more, or size 30 or more",
            )  # fmt: skip
        images = x.flatten(1, 2)
        features = self.expanded(self.contracted(images[:, :, self.window, self.window], images))
        return self.zoom(features[:, None, :, self.edged, self.edged])
