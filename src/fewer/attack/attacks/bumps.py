"""Square-shaped changes for the L2 ball: smooth bumps whose energy is moved from window to window.

In the L-inf ball every pixel may use the whole budget; in the L2 ball a change costs energy, so a step puts a bump
into one window with the energy it finds there, in a second window that it clears, and in what was never spent
(Andriushchenko et al. 2020, Section 3.3).
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from fewer.attack.ball import lengths
from fewer.attack.iteration import State

__all__ = ["as_image", "bump", "first_bumps", "moved_bump", "odd_side"]

_TINY = 1e-12
_TILES = 5  # a first guess has 5 x 5 bumps


def as_image(x: Tensor) -> Tensor:
    """(batch, channels, height, width); what is not an image is one row."""
    return x if x.ndim == 4 else x.reshape(x.shape[0], 1, 1, -1)


def _hill(height: int, width: int) -> Tensor:
    """Equation 2: a pixel at Chebyshev distance q from the middle is worth the sum of 1 / (k + 1)^2 over k >= q."""
    reach = max(height // 2, width // 2) + 1
    tails = (1 / torch.arange(1, reach + 1, dtype=torch.float64).square()).flip(0).cumsum(0).flip(0)
    rows = (torch.arange(height) - height // 2).abs()[:, None]
    columns = (torch.arange(width) - width // 2).abs()[None, :]
    return tails[torch.maximum(rows, columns)]


@functools.cache
def bump(height: int, width: int) -> Tensor:
    """(height, width), unit energy: a hill beside a valley, one above the other, or side by side in a single row."""
    if height == 1:
        half = width // 2
        both = torch.cat([_hill(1, half), -_hill(1, width - half)], 1) if half else _hill(1, width)
    else:
        half = height // 2
        both = torch.cat([_hill(half, width), -_hill(height - half, width)])
    return both / both.square().sum().sqrt()


def _placed(pattern: Tensor, top: Tensor, left: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """The pattern at each sample's own place, and its window: (batch, 1, height, width) each; top, left: (batch,)."""
    tall, wide = pattern.shape
    rows = torch.arange(size[0], device=top.device)[None, :, None] - top[:, None, None]
    columns = torch.arange(size[1], device=top.device)[None, None, :] - left[:, None, None]
    inside = (rows >= 0) & (rows < tall) & (columns >= 0) & (columns < wide)
    flat = rows.clamp(0, tall - 1) * wide + columns.clamp(0, wide - 1)
    return (pattern.reshape(-1)[flat] * inside)[:, None], inside[:, None]


def first_bumps(state: State, name: str) -> Tensor:
    """A grid of bumps with random signs, shaped like the perturbable; its energy is the whole budget's."""
    batch, channels, height, width = as_image(state.perturbable).shape
    tall, wide = max(height // _TILES, 1), max(width // _TILES, 1)
    down, across = min(_TILES, height), min(_TILES, width)
    drawn = state.noise.uniform(name, (batch, channels, down, across))
    signs = torch.where(drawn < 0.5, -1.0, 1.0).to(state.perturbable.dtype)
    pattern = bump(tall, wide).to(signs)
    grid = torch.einsum("bcij,hw->bcihjw", signs, pattern).reshape(batch, channels, down * tall, across * wide)
    over_rows, over_columns = height - down * tall, width - across * wide
    padding = (over_columns // 2, over_columns - over_columns // 2, over_rows // 2, over_rows - over_rows // 2)
    offset = torch.nn.functional.pad(grid, padding).reshape(state.perturbable.shape)
    return offset * (state.ball.budget / lengths(offset).clamp(min=_TINY))


def moved_bump(state: State, name: str, side: int) -> Tensor:
    """The best perturbation with one window cleared and its energy put into a bump elsewhere (Algorithm 3)."""
    image = as_image(state.perturbable)
    nu = image - as_image(state.ball.centre)
    batch, channels, height, width = nu.shape
    tall, wide = min(side, height), min(side, width)
    drawn = state.noise.uniform(name, (batch, channels + 5)).to(nu.dtype)
    places = [(drawn[:, i] * (size + 1)).floor().long() for i, size in enumerate((height - tall, width - wide) * 2)]
    pattern = bump(tall, wide).to(nu)
    upright, window = _placed(pattern, places[0], places[1], (height, width))
    if tall == wide:
        lying, _ = _placed(pattern.T.contiguous(), places[0], places[1], (height, width))
        upright = torch.where((drawn[:, 4] < 0.5)[:, None, None, None], upright, lying)
    _, cleared = _placed(pattern, places[2], places[3], (height, width))
    signs = torch.where(drawn[:, 5:, None, None] < 0.5, -1.0, 1.0).to(nu.dtype)

    def energy(part: Tensor) -> Tensor:
        return part.square().sum((2, 3), keepdim=True)

    unused = (torch.as_tensor(state.ball.budget, dtype=nu.dtype) ** 2 - lengths(nu).square()).clamp(min=0.0)
    here = nu * window
    shape = signs * upright + here / energy(here).sqrt().clamp(min=_TINY)
    available = (energy(nu * (window | cleared)) + unused / channels).sqrt()
    new = shape * (available / energy(shape).sqrt().clamp(min=_TINY))
    kept = nu * ~(window | cleared)
    return state.ball.centre + (kept + new).reshape(state.perturbable.shape)


def odd_side(share: float, height: int, width: int) -> int:
    """Side of a window that covers that share: odd, and at least 3."""
    side = round(math.sqrt(share * height * width)) if height > 1 else round(share * width)
    return max(side, 3) | 1
