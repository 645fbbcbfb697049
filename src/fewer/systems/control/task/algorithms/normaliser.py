"""Observations in units of their own spread; part of the prediction, and so of every pack."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["SMALLEST", "Normaliser"]

SMALLEST = 1e-3  # added to every deviation, so that a sensor that never moves stays finite


class Normaliser(NamedTuple):
    """x to (x - mean) / deviation."""

    mean: Tensor  # (observations,)
    deviation: Tensor  # (observations,), with SMALLEST added

    @classmethod
    def of(cls, observations: Tensor) -> Normaliser:
        """From (steps, observations); sums in double precision."""
        exact = observations.double()
        deviation = exact.std(dim=0, correction=0) + SMALLEST
        return cls(exact.mean(dim=0).float(), deviation.float())

    def __call__(self, observation: Tensor) -> Tensor:
        """In standard deviations."""
        return (observation - self.mean) / self.deviation

    def inverse(self, normal: Tensor) -> Tensor:
        """Back in the sensors' units."""
        return torch.addcmul(self.mean, normal, self.deviation)
