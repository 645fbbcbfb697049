"""LAMP (Lee, Park, Mo, Ahn, Shin 2021): magnitudes that layers of any scale can be compared by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fewer.core.task import Noise, Task
from fewer.pruning.criteria.magnitude import magnitude
from fewer.pruning.criteria.scoring import Modules, Scores

__all__ = ["lamp", "shares"]


def lamp(task: Task[Any], modules: Modules, batches: Sequence[Any], noise: Noise) -> Scores:
    """w^2 over the sum of all squares of its layer that are not smaller. Needs no data.

    Within a layer the order is that of magnitudes. A layer's largest weight scores 1, so no layer dies out.
    """
    sizes = magnitude(task, modules, batches, noise)
    return {net: {key: shares(size) for key, size in by_name.items()} for net, by_name in sizes.items()}


def shares(size: Tensor) -> Tensor:
    """Of one layer, from the sizes of its weights."""
    square = size.to(torch.float64).reshape(-1).square()
    order = torch.sort(square, descending=True, stable=True).indices
    shares = torch.zeros_like(square)
    shares[order] = square[order] / square[order].cumsum(0).clamp(min=torch.finfo(square.dtype).tiny)
    return shares.view(size.shape)
