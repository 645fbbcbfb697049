"""The competition's 3D U-Net and the paper's improved one: one hour of images in, one map a lead time out.

Both map a satellite pixel of 12 km to the radar pixel of 2 km with the same index: the zoom into the centre has to be
learnt. Five levels; time is pooled with space, from 4 images to 1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.systems.nowcast.task.models.blocks import Gate, Resize, convolution, ending, recomputed
from fewer.systems.nowcast.task.windows import COMPETITION, Geometry

__all__ = ["UNet"]

_LEVELS = 5


class UNet(nn.Module):
    """(batch, channels, SEEN, size, size) to (batch, LEADS, size, size)."""

    def __init__(
        self,
        channels: int,
        width: int = 32,
        *,
        improved: bool = False,
        resize: bool = False,
        gates: bool = False,
        dropout: float = 0.4,
        geometry: Geometry = COMPETITION,
    ) -> None:
        super().__init__()
        sizes = [width << level for level in range(_LEVELS)]
        self.down = nn.ModuleList(
            nn.Sequential(
                convolution(before, size, improved=improved, dropout=dropout),
                convolution(size, size, improved=improved, dropout=dropout),
            )
            for before, size in zip([channels, *sizes], sizes)
        )
        self.drop = nn.ModuleList(nn.Dropout3d(dropout) for _ in sizes)  # on the skips, the last at the bottom
        self.up = nn.ModuleList()
        self.ending = nn.ModuleList()
        self.gate = nn.ModuleList()
        self.join = nn.ModuleList()
        for size in sizes[:-1][::-1]:
            transposed = nn.ConvTranspose3d(2 * size, size, 2, stride=2, bias=False)
            self.up.append(Resize(2 * size, size) if resize else transposed)
            self.ending.append(nn.Sequential(*ending(size, improved)))
            if gates:
                self.gate.append(Gate(size, 2 * size))
            self.join.append(
                nn.Sequential(
                    convolution(2 * size, size, improved=improved), convolution(size, size, improved=improved)
                )
            )
        self.out = nn.Conv2d(geometry.seen * width, geometry.leads, 1)
        self.recompute = False  # keep only each level's input for the backward pass

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for level, (block, drop) in enumerate(zip(self.down, self.drop)):
            if level:
                x = functional.max_pool3d(x, 2, ceil_mode=True)
            x = recomputed(block, x, wanted=self.recompute)
            skips.append(drop(x))
        x = skips.pop()
        for level, (up, norm, join) in enumerate(zip(self.up, self.ending, self.join)):
            skip = skips.pop()
            kept = self.gate[level](skip, x) if self.gate else skip
            depth, height, width = skip.shape[2:]
            larger = norm(up(x)[:, :, :depth, :height, :width])
            x = recomputed(join, torch.cat([larger, kept], dim=1), wanted=self.recompute)
        return self.out(x.flatten(1, 2))  # type: ignore[no-any-return]
