"""What the geometry-aware models share: a 2D U-Net at the satellite's resolution, a reading a lead time, the zoom.

Images of one hour are channels. Each lead time reads the same features through its own gains, and its logits at 12 km
are resized to the radar's 2 km.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.systems.nowcast.task.models.blocks import recomputed
from fewer.systems.nowcast.task.windows import COMPETITION, Geometry, center

__all__ = ["POOLINGS", "Lead", "Plane", "pair"]

POOLINGS = 3  # sides must be divisible by two that often
_JOINED = 2  # the level of 48 km
_DRY = -1.5  # first guess of every logit: rain is rare


def pair(inputs: int, outputs: int) -> nn.Sequential:
    """Two convolutions with batch norm."""
    parts: list[nn.Module] = []
    for before in (inputs, outputs):
        parts += [nn.Conv2d(before, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*parts)


class Lead(nn.Module):
    """Features (batch, LEADS or 1, channels, h, w) as each lead time reads them: (batch * LEADS, channels, h, w)."""

    def __init__(self, channels: int, leads: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(1 + 0.1 * torch.randn(leads, channels))
        self.shift = nn.Parameter(0.1 * torch.randn(leads, channels))

    def forward(self, x: Tensor) -> Tensor:
        shape = (1, len(self.gain), x.shape[2], 1, 1)
        return functional.relu(x * self.gain.view(shape) + self.shift.view(shape)).flatten(0, 1)


class Plane(nn.Module):
    """The parts; a model says what goes in and where each lead time looks.

    `context` makes `joining` features of the whole image at 48 km, aligned with what goes in; they join at that level.
    """

    def __init__(
        self,
        images: int,
        size: int,
        width: int,
        *,
        context: nn.Module | None = None,
        joining: int = 0,
        dropout: float,
        geometry: Geometry = COMPETITION,
    ) -> None:
        super().__init__()
        inner = center(size, geometry.factor)
        self.context, self.leads, self.factor = context, geometry.leads, geometry.factor
        self.size, self.zoomed = size, geometry.factor * (inner.stop - inner.start + 2)
        down = (images, width), (width, 2 * width), (2 * width + joining, 4 * width), (4 * width, 8 * width)
        up = (12 * width, 4 * width), (6 * width, 2 * width), (3 * width, 2 * width)
        self.down = nn.ModuleList(pair(*channels) for channels in down)
        self.up = nn.ModuleList(pair(*channels) for channels in up)
        self.drop = nn.Dropout2d(dropout)
        self.lead = Lead(2 * width, geometry.leads)
        self.head = nn.Sequential(nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 1, 1))
        nn.init.constant_(self.head[2].bias, _DRY)  # type: ignore[arg-type]
        self.recompute = False  # keep only each level's input for the backward pass

    def contracted(self, images: Tensor, whole: Tensor | None = None) -> list[Tensor]:
        """Every level's features, the coarsest last; the whole image is for the context, where there is one."""
        x, levels = images, []
        for level, block in enumerate(self.down):
            if level:
                x = functional.max_pool2d(x, 2)
            if level == _JOINED and self.context is not None and whole is not None:
                x = torch.cat([x, recomputed(self.context, whole, wanted=self.recompute)], dim=1)
            x = recomputed(block, x, wanted=self.recompute)
            levels.append(x)
        return levels

    def expanded(self, levels: list[Tensor]) -> Tensor:
        """Features at full resolution, (batch, 2 * width, h, w)."""
        x: Tensor = self.drop(levels[-1])
        for block, skip in zip(self.up, levels[-2::-1]):
            x = functional.interpolate(x, size=skip.shape[2:], mode="bilinear")
            x = recomputed(block, torch.cat([x, skip], dim=1), wanted=self.recompute)
        return x

    def zoom(self, features: Tensor) -> Tensor:
        """(batch, LEADS or 1, 2 * width, inner + 2, inner + 2) at 12 km to logits (batch, LEADS, size, size) at 2 km.

        One pixel more on each side, so that the edges are resized with their neighbours.
        """
        logits: Tensor = self.head(self.lead(features))
        maps = logits.reshape(-1, self.leads, *logits.shape[2:])
        fine = functional.interpolate(maps, size=[self.zoomed, self.zoomed], mode="bilinear")
        return fine[:, :, self.factor : self.factor + self.size, self.factor : self.factor + self.size]
