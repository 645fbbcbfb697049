"""Where an ascent begins: at the clean input, anywhere in the ball, or where its gradient says nothing.

A network hardened from even starts alone may answer with flat ground: a patch of small random changes cancels out, the
gradient is zero, and PGD stays where it began, while a patch that is bright all over would have fooled it (which is
what Square finds). `corners`, `blocks` and `stripes` begin with the whole budget, in ever larger patches.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fewer.attack.attacks.bumps import as_image
from fewer.attack.ball import Ball
from fewer.core.task import Noise

__all__ = ["STARTS", "Start", "blocks", "corners", "mixed", "stripes"]

Start = Callable[[Ball, Noise, str], Tensor]  # a point of the ball; `name` names the randomness
_NEAR = 1e-3  # TRADES' spread
_CELLS = 7  # a block is a seventh of the image's height


def _all_out(ball: Ball, drawn: Tensor) -> Tensor:
    """The whole budget up where `drawn` (even in [0, 1), shaped like an image) is large, and down elsewhere."""
    signs = torch.where(drawn < 0.5, -1.0, 1.0).to(ball.centre.dtype)
    return ball.project(ball.centre + ball.budget * signs.reshape(ball.centre.shape))


def corners(ball: Ball, noise: Noise, name: str) -> Tensor:
    """Every value at one end or the other by chance."""
    return _all_out(ball, noise.uniform(f"{name}/corners", tuple(ball.centre.shape)))


def stripes(ball: Ball, noise: Noise, name: str) -> Tensor:
    """Whole columns at one end or the other."""
    batch, channels, height, width = as_image(ball.centre).shape
    drawn = noise.uniform(f"{name}/stripes", (batch, channels, 1, width))
    return _all_out(ball, drawn.expand(-1, -1, height, -1))


def blocks(ball: Ball, noise: Noise, name: str) -> Tensor:
    """Square blocks at one end or the other, their grid anywhere."""
    batch, channels, height, width = as_image(ball.centre).shape
    side = max(1, (height if height > 1 else width) // _CELLS)
    rows, columns = height // side + 2, width // side + 2
    drawn = noise.uniform(f"{name}/blocks", (batch, channels, rows, columns))
    shift = (noise.uniform(f"{name}/shift", (batch, 2)) * side).floor().to(torch.int64)  # (batch, 2)
    row = (torch.arange(height, device=drawn.device) + shift[:, :1]) // side  # (batch, height)
    column = (torch.arange(width, device=drawn.device) + shift[:, 1:]) // side
    tall = drawn.gather(2, row[:, None, :, None].expand(-1, channels, -1, columns))
    return _all_out(ball, tall.gather(3, column[:, None, None, :].expand(-1, channels, height, -1)))


def mixed(ball: Ball, noise: Noise, name: str) -> Tensor:
    """A third of the samples each: anywhere in the ball, blocks, stripes."""
    which = noise.uniform(f"{name}/which", (ball.centre.shape[0],)).reshape(-1, *[1] * (ball.centre.ndim - 1))
    bold = torch.where(which < 2 / 3, blocks(ball, noise, name), stripes(ball, noise, name))
    return torch.where(which < 1 / 3, ball.random(noise, name), bold)


STARTS: dict[str, Start] = {
    "uniform": lambda ball, noise, name: ball.random(noise, name),
    "near": lambda ball, noise, name: ball.near(noise, name, _NEAR),
    "centre": lambda ball, noise, name: ball.centre,
    "corners": corners,
    "blocks": blocks,
    "stripes": stripes,
    "mixed": mixed,
}
