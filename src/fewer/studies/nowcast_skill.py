"""What forecasts know beyond their decisions, window by window: how surprised they are, and whether they know where.

A model that only tells wet windows from dry ones can have a fair IoU. Inside a window its probability is then the same
where it rained and where it did not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fewer.core.data import batches
from fewer.core.task import Predict
from fewer.studies.nowcast_assembly import Recorded
from fewer.tasks.nowcast.intervals import Interval, average
from fewer.tasks.nowcast.losses import cross_entropy, valid_mean

__all__ = ["Skill", "entropy_below", "skill"]

_PIXELS = (1, 2, 3)  # leads, rows, columns


@dataclass(frozen=True)
class Skill:
    """Of each window."""

    entropy: Tensor  # cross entropy, rain weighted as in training
    apart: Tensor  # mean probability where it rained less where it did not; NaN where one of both is nowhere
    places: Tensor

    def figures(self) -> dict[str, float]:
        """Means over windows."""
        return {"cross_entropy": float(self.entropy.mean()), "knows_where": float(self.apart.nanmean())}


def skill(task: Recorded, predict: Predict, split: str, weight: float) -> Skill:
    """A pass over the split."""
    data, parts = task.kept[split], []
    for index in batches(data, task.per_batch):
        batch = data.take(index)
        probability, wet = predict(batch), (batch.rate > 0).float()
        entropy = valid_mean(cross_entropy(torch.logit(probability, 1e-6), wet, weight), batch.valid, _PIXELS)
        rained, dry = wet * batch.valid, (1 - wet) * batch.valid
        both = (rained.sum(_PIXELS) > 0) & (dry.sum(_PIXELS) > 0)
        apart = valid_mean(probability, rained, _PIXELS) - valid_mean(probability, dry, _PIXELS)
        found = (entropy.double(), torch.where(both, apart.double(), torch.nan), batch.place)
        parts.append(tuple(part.cpu() for part in found))
    return Skill(*[torch.cat(column) for column in zip(*parts)])


def entropy_below(found: Mapping[str, Skill], first: str, second: str) -> Interval:
    """How much less surprised the first is than the second, on the same windows."""
    one, other = found[first], found[second]
    return average(other.entropy - one.entropy, one.places)
