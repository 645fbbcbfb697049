"""The eight turns and mirrors of the square, of both grids alike."""

from __future__ import annotations

import torch
from torch import Tensor

from fewer.core.task import Noise
from fewer.systems.nowcast.task.windows import Windows

__all__ = ["turned"]


def turned(batch: Windows, noise: Noise) -> Windows:
    """Each sample mirrored and transposed as the noise says, one of eight ways.

    Both grids share their centre, so that the same turn keeps them registered, where the radar's square lies exactly
    in the middle of the satellite's: sizes that are multiples of 12.
    """
    coins = noise.uniform("turn", (batch.satellite.shape[0], 3)) < 0.5
    parts = [batch.satellite, batch.missing, batch.rate, batch.valid]
    satellite, missing, rate, valid = (_turn(part, coins) for part in parts)
    return Windows(satellite, missing, rate, valid, batch.place)


def _turn(x: Tensor, coins: Tensor) -> Tensor:
    across, down, over = (coin.view(-1, *(1,) * (x.ndim - 1)) for coin in coins.unbind(1))
    x = torch.where(across, x.flip(-1), x)
    x = torch.where(down, x.flip(-2), x)
    return torch.where(over, x.transpose(-1, -2), x)
