"""A model that knows the geometry: it looks around the square that the radar covers, forecasts at 12 km, and zooms.

The radar's square is the central sixth of the satellite's. A 2D U-Net works at the satellite's own resolution on twice
that square; around its third level lies the whole image at 48 km, aligned with it, for what will drift in. Each lead
time then reads the same features through its own gains, and the logits are resized to 2 km.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.errors import UserError
from fewer.tasks.nowcast.blocks import recomputed
from fewer.tasks.nowcast.windows import FACTOR, LEADS, SEEN, center

__all__ = ["Focus"]

_POOL = 4  # satellite pixels in one of the context's, as after two poolings
_DRY = -1.5  # first guess of every logit: rain is rare


def _pair(inputs: int, outputs: int) -> nn.Sequential:
    parts: list[nn.Module] = []
    for before in (inputs, outputs):
        parts += [nn.Conv2d(before, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*parts)


class Lead(nn.Module):
    """Features (batch, channels, h, w) as each lead time reads them: (batch * LEADS, channels, h, w)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(1 + 0.1 * torch.randn(LEADS, channels))
        self.shift = nn.Parameter(0.1 * torch.randn(LEADS, channels))

    def forward(self, x: Tensor) -> Tensor:
        shape = (1, LEADS, x.shape[1], 1, 1)
        return functional.relu(x[:, None] * self.gain.view(shape) + self.shift.view(shape)).flatten(0, 1)


class Context(nn.Module):
    """The whole image at 48 km, seen at 96 km as well, cut to the window: (batch, features, window / 4, window / 4)."""

    def __init__(self, images: int, width: int, *, size: int, first: int, window: int) -> None:
        super().__init__()
        # whole context pixels before and after the window, an even number, enough to cover the image
        before, after = (-(-pixels // (2 * _POOL)) * 2 for pixels in (first, size - first - window))
        ends = before * _POOL - first, after * _POOL - (size - first - window)
        self.ends = (*ends, *ends)
        self.inside = slice(before, before + window // _POOL)
        self.near, self.far = _pair(images, width), _pair(width, 2 * width)
        self.out = _pair(3 * width, 2 * width)

    def forward(self, images: Tensor) -> Tensor:
        near = self.near(functional.avg_pool2d(functional.pad(images, self.ends), _POOL))
        far = functional.interpolate(self.far(functional.max_pool2d(near, 2)), size=near.shape[2:], mode="bilinear")
        both = torch.cat([near, far], dim=1)
        return self.out(both[:, :, self.inside, self.inside])  # type: ignore[no-any-return]


class Focus(nn.Module):
    """(batch, channels, SEEN, size, size) to (batch, LEADS, size, size)."""

    def __init__(self, channels: int, size: int, width: int = 32, *, dropout: float = 0.1) -> None:
        super().__init__()
        inner, images = center(size), channels * SEEN
        count = inner.stop - inner.start
        window = -(-2 * count // 8) * 8  # three poolings fit
        first = inner.start - (window - count) // 2
        self.window = slice(first, first + window)
        # one pixel more on each side, so that the edges are resized with their neighbours
        self.edged = slice(inner.start - first - 1, inner.stop - first + 1)
        self.size, self.zoomed = size, FACTOR * (count + 2)
        self.context = Context(images, width, size=size, first=first, window=window)
        down = (images, width), (width, 2 * width), (4 * width, 4 * width), (4 * width, 8 * width)
        up = (12 * width, 4 * width), (6 * width, 2 * width), (3 * width, 2 * width)
        self.down = nn.ModuleList(_pair(*channels) for channels in down)
        self.up = nn.ModuleList(_pair(*channels) for channels in up)
        self.drop = nn.Dropout2d(dropout)
        self.lead = Lead(2 * width)
        self.head = nn.Sequential(nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 1, 1))
        nn.init.constant_(self.head[2].bias, _DRY)  # type: ignore[arg-type]
        self.recompute = False

    def forward(self, x: Tensor) -> Tensor:
        deepest = (self.window.stop - self.window.start) >> 3  # pixels along the last level
        if self.training and len(x) * deepest**2 == 1:
            raise UserError(
                f"batches of one sample of {self.size} pixels", "two values a channel for focus to normalise by",
                "--batch 2 or more, or size 30 or more",
            )  # fmt: skip
        images = x.flatten(1, 2)
        around = recomputed(self.context, images, wanted=self.recompute)
        x, skips = images[:, :, self.window, self.window], []
        for level, block in enumerate(self.down):
            if level:
                x = functional.max_pool2d(x, 2)
            if level == 2:  # 48 km, as the context
                x = torch.cat([x, around], dim=1)
            x = recomputed(block, x, wanted=self.recompute)
            skips.append(x)
        x = self.drop(skips.pop())
        for block in self.up:
            skip = skips.pop()
            x = functional.interpolate(x, size=skip.shape[2:], mode="bilinear")
            x = recomputed(block, torch.cat([x, skip], dim=1), wanted=self.recompute)
        return self._zoom(self.head(self.lead(x[:, :, self.edged, self.edged])))

    def _zoom(self, logits: Tensor) -> Tensor:
        """(batch * LEADS, 1, inner + 2, inner + 2) at 12 km to (batch, LEADS, size, size) at 2 km."""
        maps = logits.reshape(-1, LEADS, *logits.shape[2:])
        fine = functional.interpolate(maps, size=[self.zoomed, self.zoomed], mode="bilinear")
        return fine[:, :, FACTOR : FACTOR + self.size, FACTOR : FACTOR + self.size]
