"""What training sees of an image: shifted, mirrored, with a square cut out, drawn by the engine's own randomness.

Everything is a function of (seed, step), computed where the batch lies and under vmap: a replica sees in a cohort what
it sees alone, and a run that goes on after a kill sees what it would have seen.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from fewer.core.errors import UserError
from fewer.core.task import Noise

__all__ = ["KINDS", "augmented", "parse_augment"]

KINDS = ("crop", "flip", "cutout")
PADDING = 4  # pixels, for images of 32; others in proportion (He et al. 2016, section 4.2)
HOLE = 8  # side of the square (DeVries and Taylor 2017 take 16 of 32 for long trainings)
GREY = 0.5


def parse_augment(text: str) -> tuple[str, ...]:
    """Of a text such as `crop,flip`."""
    kinds = tuple(part.strip() for part in text.split(",") if part.strip())
    for kind in kinds:
        if kind not in KINDS:
            raise UserError(f"augment {kind!r}", f"some of {', '.join(KINDS)}, with commas between")
    return kinds


def augmented(pixels: Tensor, noise: Noise, kinds: Sequence[str]) -> Tensor:
    """(batch, channels, height, width), changed; every image by its own lot."""
    count, channels, height, width = pixels.shape
    if "crop" in kinds or "flip" in kinds:
        padding = max(1, PADDING * min(height, width) // 32) if "crop" in kinds else 0
        rows, columns = _places(noise, (count, height, width), padding, "flip" in kinds)
        wide = functional.pad(pixels, (padding,) * 4)
        taken = wide.gather(2, rows[:, None, :, None].expand(count, channels, height, wide.shape[3]))
        pixels = taken.gather(3, columns[:, None, None, :].expand(count, channels, height, width))
    if "cutout" in kinds:
        pixels = torch.where(_hole(noise, (count, height, width))[:, None], GREY, pixels)
    return pixels


def _places(noise: Noise, sizes: tuple[int, int, int], padding: int, flip: bool) -> tuple[Tensor, Tensor]:
    """Which rows (batch, height) and columns (batch, width) of the padded images are taken, in which order."""
    count, height, width = sizes
    begin = (noise.uniform("augment/crop", (2, count)) * (2 * padding + 1)).long().clamp(max=2 * padding)
    rows, columns = torch.arange(height, device=begin.device), torch.arange(width, device=begin.device)
    across = columns.expand(count, width)
    if flip:
        mirrored = noise.uniform("augment/flip", (count, 1)) < 0.5
        across = torch.where(mirrored, width - 1 - across, across)
    return begin[0][:, None] + rows, begin[1][:, None] + across


def _hole(noise: Noise, sizes: tuple[int, int, int]) -> Tensor:
    """(batch, height, width): what is cut out, a square around a pixel anywhere in the image."""
    count, height, width = sizes
    side = max(1, HOLE * min(height, width) // 32)
    lot = noise.uniform("augment/cutout", (2, count))
    top = (lot[0] * height).long()[:, None] - side // 2
    left = (lot[1] * width).long()[:, None] - side // 2
    rows, columns = torch.arange(height, device=lot.device), torch.arange(width, device=lot.device)
    inside = (rows >= top) & (rows < top + side)
    return inside[:, :, None] & ((columns >= left) & (columns < left + side))[:, None, :]
