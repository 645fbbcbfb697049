"""A geometry-aware model in which what it sees drifts with the clouds: each lead time looks where its air is now.

The clouds' motion, one vector for the surroundings, follows from the hour of images by Lucas and Kanade's least
squares, and the network corrects it. Features of a 2D U-Net around the radar's square are then read as many steps
upwind as a lead time is ahead, so that the network has to learn what clouds mean, not how to carry them. Reading
between pixels is a product with two matrices a lead time, one for rows and one for columns: nothing that a pack, ONNX
or a cohort does not know.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.systems.nowcast.task.models.plane import POOLINGS, Plane
from fewer.systems.nowcast.task.windows import COMPETITION, REACH, Geometry, center

__all__ = ["Drift", "clouds_motion"]

_RIDGE = 0.02  # of the mean squared gradient: where there is little to see, nothing moves
_NEAR = 2  # pixels that smoothing and slopes reach
_SMALL, _TINY = 1e-6, 1e-12
_CHANCE = 36.0  # twice what two numbers explain of noise that nine pixels share, by the smoothing


def clouds_motion(images: Tensor) -> Tensor:
    """(batch, 2): rows and columns that clouds move from one of (batch, SEEN, h, w) images to the next, on average.

    A missing pixel is exactly 0; it and its neighbours weigh nothing. Large differences, clouds that grew rather than
    moved, weigh less. A motion that explains no more of the differences than chance would is none.
    """
    unknown = functional.relu(1 - images.abs() / _SMALL)
    unknown = functional.max_pool2d(unknown, 2 * _NEAR + 1, stride=1, padding=_NEAR)
    smooth = functional.avg_pool2d(images, 3, stride=1, padding=1, count_include_pad=False)
    apart = smooth[:, 1:] - smooth[:, :-1]
    middle = (smooth[:, 1:] + smooth[:, :-1]) / 2
    apart, down, across = (
        apart[..., 1:-1, 1:-1],
        (middle[..., 2:, 1:-1] - middle[..., :-2, 1:-1]) / 2,
        (middle[..., 1:-1, 2:] - middle[..., 1:-1, :-2]) / 2,
    )
    known = ((1 - unknown[:, 1:]) * (1 - unknown[:, :-1]))[..., 1:-1, 1:-1]
    weight = known / (1 + apart * apart)

    def mean(product: Tensor) -> Tensor:
        return (weight * product).mean((1, 2, 3))

    rows, columns, both = mean(down * down), mean(across * across), mean(down * across)
    ridge = _RIDGE * (rows + columns) / 2 + _SMALL
    rows, columns = rows + ridge, columns + ridge
    left = mean(down * apart), mean(across * apart)
    whole = rows * columns - both * both
    motion = torch.stack(
        [(both * left[1] - columns * left[0]) / whole, (both * left[0] - rows * left[1]) / whole], dim=1
    )
    explained = -(motion[:, 0] * left[0] + motion[:, 1] * left[1])
    by_chance = _CHANCE * (mean(apart * apart) - explained) / known.sum((1, 2, 3)).clamp(min=1.0)
    return motion * functional.relu(1 - by_chance / (explained + _TINY))[:, None]


class Drift(Plane):
    """(batch, channels, SEEN, size, size) to (batch, LEADS, size, size)."""

    steps: Tensor
    pixels: Tensor
    wanted: Tensor

    def __init__(
        self, channels: int, size: int, width: int = 16, *, dropout: float = 0.1, geometry: Geometry = COMPETITION
    ) -> None:
        super().__init__(channels * geometry.seen, size, width, dropout=dropout, geometry=geometry)
        inner, self.tops = center(size, geometry.factor), geometry.moving
        reach = min(REACH, inner.start)
        self.window = slice(inner.start - reach, inner.stop + reach)
        count = self.window.stop - self.window.start
        self.beyond = -count % (1 << POOLINGS)  # rows and columns of nothing, so that the poolings fit
        # what the least squares did not see: small, and never pruned; not 0, as on whole pixels it has no gradient
        self.turn = nn.Parameter(1e-3 * torch.randn(2, 8 * width))
        self.turn_always = nn.Parameter(torch.zeros(2))
        steps, pixels = torch.arange(1, geometry.leads + 1.0), torch.arange(float(count))
        wanted = torch.arange(reach - 1.0, reach + inner.stop - inner.start + 1)  # the radar's, and one around
        for name, values in (("steps", steps), ("pixels", pixels), ("wanted", wanted)):
            self.register_buffer(name, values, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x[..., self.window, self.window]
        count = x.shape[-1]
        levels = self.contracted(functional.pad(x.flatten(1, 2), (0, self.beyond, 0, self.beyond)))
        turned = functional.linear(levels[-1].mean((2, 3)), self.turn, self.turn_always)
        features = self.expanded(levels)[..., :count, :count]
        return self.zoom(self._upwind(features, clouds_motion(x[:, self.tops]) + turned))

    def _upwind(self, features: Tensor, motion: Tensor) -> Tensor:
        """(batch, LEADS, channels, wanted, wanted): the wanted pixels as their air is seen now, linear in between."""
        batch, channels, count, _ = features.shape
        path = motion[:, :, None] * self.steps  # (batch, 2, LEADS)
        source = (self.wanted - path[..., None]).clamp(0.0, count - 1.0)  # beyond the edge lies the edge
        share = functional.relu(1 - (source[..., None] - self.pixels).abs()).to(features.dtype)
        rows, columns = share[:, 0].flatten(1, 2), share[:, 1]  # (batch, LEADS * wanted, count), (batch, LEADS, ...)
        lines = torch.bmm(rows, features.transpose(1, 2).flatten(2))  # (batch, LEADS * wanted, channels * count)
        lines = lines.reshape(batch * self.leads, -1, count)  # (batch * LEADS, wanted * channels, count)
        found = torch.bmm(lines, columns.flatten(0, 1).transpose(1, 2))
        return found.reshape(batch, self.leads, -1, channels, found.shape[-1]).transpose(2, 3)
