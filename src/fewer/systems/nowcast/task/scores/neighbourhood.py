"""The fractions skill score: is there the right share of rain around a pixel, even if not in it?"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from fewer.core.errors import UserError

__all__ = ["Neighbourhood", "fractions"]


def fractions(rain: Tensor, seen: Tensor, scale: int) -> Tensor:
    """Share of the seen pixels in the square of that width around each pixel that are rain; 0 where none is seen."""
    return _window_sum(rain * seen, scale) / _window_sum(seen.float(), scale).clamp(min=1)


def _window_sum(field: Tensor, scale: int) -> Tensor:
    """Sums over squares from one table of running sums, so that the cost does not depend on the width."""
    half = scale // 2
    sums = pad(field.float(), (half + 1, half, half + 1, half)).cumsum(-1).cumsum(-2)  # whole numbers: exact
    return (
        sums[..., scale:, scale:]
        - sums[..., :-scale, scale:]
        - sums[..., scale:, :-scale]
        + sums[..., :-scale, :-scale]
    )


class Neighbourhood:
    """FSS = 1 - sum (F - O)^2 / (sum F^2 + sum O^2) over seen pixels, at one scale."""

    def __init__(self, scale: int) -> None:
        if scale < 1 or scale % 2 == 0:
            raise UserError(f"a neighbourhood {scale} pixels wide", "an odd width, 1 or more")
        self.scale = scale
        self.sums: Tensor | None = None  # (3, leads): squares of the difference, their reference, pixels

    def add(self, forecast: Tensor, truth: Tensor, seen: Tensor) -> None:
        """(batch, leads, height, width) each, boolean."""
        said, fell = fractions(forecast, seen, self.scale), fractions(truth, seen, self.scale)
        parts = (said - fell).square(), said.square() + fell.square(), torch.ones_like(said)
        sums = torch.stack([(part * seen).sum((0, 2, 3), dtype=torch.float64) for part in parts]).cpu()
        self.sums = sums if self.sums is None else self.sums + sums

    def by_lead(self) -> Tensor:
        """(leads,): 1 where nothing fell and nothing was forecast, 0 where nothing was seen."""
        assert self.sums is not None, "nothing was added"
        return _skill(self.sums)

    def overall(self) -> float:
        """All lead times pooled."""
        assert self.sums is not None, "nothing was added"
        return float(_skill(self.sums.sum(1)))


def _skill(sums: Tensor) -> Tensor:
    apart, reference, pixels = sums
    agreed = (pixels > 0).to(apart)
    return torch.where(reference > 0, 1 - apart / reference.clamp(min=1e-12), agreed)
