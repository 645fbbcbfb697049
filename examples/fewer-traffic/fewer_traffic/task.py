"""Generated counts of a road with rush hours and quiet weekends, six hours in and one out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fewer import Regression

__all__ = ["HOURS", "Traffic", "counts"]

HOURS = 6
_DAYS = 140


def counts(days: int = _DAYS) -> Tensor:
    """Hundreds of cars in each hour: two rush hours on weekdays, one hump at weekends, some chance."""
    hour = torch.arange(24 * days, dtype=torch.float32)
    clock, weekend = hour % 24, (hour // 24 % 7) >= 5
    rush = torch.exp(-((clock - 8) ** 2) / 4) + 1.2 * torch.exp(-((clock - 17) ** 2) / 6)
    leisure = 0.7 * torch.exp(-((clock - 14) ** 2) / 18)
    chance = torch.randn(hour.shape, generator=torch.Generator().manual_seed(0))
    mean = 0.3 + 4 * torch.where(weekend, leisure, rush) + 0.3 * torch.cos(2 * math.pi * hour / (24 * 28))
    return (mean + 0.15 * chance).clamp(min=0)


class Traffic(Regression):
    """The last six counts in, the next one out."""

    recommended = {"steps": 1500, "batch": 64}
    low = 0.0  # no attack makes a count negative

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(HOURS, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        seen = counts()
        x, y = seen.unfold(0, HOURS, 1)[:-1], seen[HOURS:, None]
        cut = len(x) * 4 // 5  # the last fifth is judged by: a forecast may not know the future
        return {"train": [(x[:cut], y[:cut])], "test": [(x[cut:], y[cut:])]}
