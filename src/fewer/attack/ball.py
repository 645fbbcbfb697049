"""The set an adversary may move in: a ball around the clean input, cut by the legal bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from fewer.core.abilities import Attackable
from fewer.core.errors import UserError
from fewer.core.task import Noise

__all__ = ["Ball", "Bounds", "Budget", "checked_budget", "checked_norm", "lengths"]

Budget = float | Tensor  # in the input's own units; a tensor lets a ramp follow the training step
_TINY = 1e-12


def checked_budget(budget: Budget, name: str = "budget") -> Budget:
    """The budget, or another length, unless it is negative or not a number. Tensors are trusted: not known yet."""
    if not isinstance(budget, Tensor) and not (math.isfinite(budget) and budget >= 0):
        raise UserError(f"attack {name} {budget}", "a finite number of at least 0, in the input's own units")
    return budget


def checked_norm(norm: float) -> float:
    """The norm, if it is one of the two known ones."""
    if norm not in (2.0, math.inf):
        raise UserError(f"attack norm {norm}", "inf or 2")
    return norm


def lengths(x: Tensor, norm: float = 2.0) -> Tensor:
    """Length of each sample, shaped (batch, 1, ...) so that it divides x."""
    flat = x.flatten(1)
    length = flat.abs().amax(1) if norm == math.inf else flat.square().sum(1).sqrt()
    return length.reshape(-1, *[1] * (x.ndim - 1))


class Bounds:
    """A task's bounds beside any input, moved to its device only once: a captured graph cannot copy from the host."""

    def __init__(self, task: Attackable) -> None:
        self._pair = task.bounds
        self._moved: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}

    def like(self, perturbable: Tensor) -> tuple[Tensor, Tensor]:
        """Lowest and highest legal perturbable, on this one's device."""
        key = (perturbable.device, perturbable.dtype)
        if key in self._moved:
            return self._moved[key]
        low, high = (bound.to(perturbable.device, perturbable.dtype) for bound in self._pair)
        # a tensor made inside torch.func.grad dies with it and must not be kept
        if not any(torch._C._functorch.is_functorch_wrapped_tensor(bound) for bound in (low, high)):
            self._moved[key] = low, high
        return low, high


@dataclass(frozen=True)
class Ball:
    """All points within `budget` of `centre` and between `low` and `high`.

    For L-inf the cut of ball and bounds is one box, computed once; for L2 `low` and `high` are the bounds alone,
    and clipping to them after the projection only moves a point nearer to the centre.
    """

    centre: Tensor
    low: Tensor
    high: Tensor
    budget: Budget
    norm: float

    @staticmethod
    def around(centre: Tensor, bounds: Bounds, budget: Budget, norm: float) -> Ball:
        """The ball of one batch; samples on axis 0 of centre, low and high."""
        if isinstance(budget, Tensor):
            budget = budget.to(centre.dtype)
        low, high = bounds.like(centre)
        if norm == math.inf:
            return Ball(centre, torch.maximum(centre - budget, low), torch.minimum(centre + budget, high), budget, norm)
        return Ball(centre, low.expand_as(centre), high.expand_as(centre), budget, norm)

    def project(self, x: Tensor) -> Tensor:
        """The nearest point of the ball, then of the bounds."""
        if self.norm == 2:
            offset = x - self.centre
            x = self.centre + offset * (self.budget / lengths(offset).clamp(min=_TINY)).clamp(max=1.0)
        return torch.clamp(x, self.low, self.high)

    def steepest(self, gradient: Tensor) -> Tensor:
        """The direction of unit length (in this norm) along which a linear function of that gradient rises most."""
        return gradient.sign() if self.norm == math.inf else gradient * (1 / lengths(gradient).clamp(min=_TINY))

    def random(self, noise: Noise, name: str) -> Tensor:
        """A point drawn evenly from the ball, then brought inside the bounds."""
        shape = tuple(self.centre.shape)
        if self.norm == math.inf:
            offset = noise.uniform(name, shape) * 2 - 1
        else:
            direction = noise.normal(name, shape)
            share = noise.uniform(name + "/radius", (shape[0],)) ** (1 / max(math.prod(shape[1:]), 1))
            offset = direction / lengths(direction).clamp(min=_TINY) * share.reshape(-1, *[1] * (len(shape) - 1))
        return self.project(self.centre + self.budget * offset.to(self.centre.dtype))

    def near(self, noise: Noise, name: str, spread: float) -> Tensor:
        """The centre with a little normal noise, where TRADES starts: at the centre itself its gradient is zero."""
        drawn = noise.normal(name, tuple(self.centre.shape)).to(self.centre.dtype)
        return self.project(self.centre + spread * drawn)

    def take(self, index: Tensor) -> Ball:
        """The balls of some samples."""
        parts: dict[str, Any] = {name: getattr(self, name).index_select(0, index) for name in ("centre", "low", "high")}
        return replace(self, **parts)
