"""What forecasts know beyond their decisions: how precise and how surprised they are, and whether they know where.

A model that only tells wet windows from dry ones can have a fair IoU. Inside a window its probability is then the same
where it rained and where it did not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fewer.core.data import batches
from fewer.core.task import Predict
from fewer.systems.nowcast.studies.scored.assembly import Recorded
from fewer.systems.nowcast.task.losses import cross_entropy, valid_mean
from fewer.systems.nowcast.task.scores.intervals import Interval, average, pooled_difference
from fewer.systems.nowcast.task.scores.scores import LEVELS, average_precision, average_precisions, leveled

__all__ = ["Skill", "entropy_below", "precision_above", "skill"]

_PIXELS = (1, 2, 3)  # leads, rows, columns


@dataclass(frozen=True)
class Skill:
    """Of each window."""

    levels: Tensor  # (windows, 2, LEVELS): how often each level of probability met dry and wet
    entropy: Tensor  # cross entropy, rain weighted as in training
    apart: Tensor  # mean probability where it rained less where it did not; NaN where one of both is nowhere
    places: Tensor

    def metrics(self) -> dict[str, float]:
        """Precision of all windows together, means over windows of the others."""
        return {
            "average_precision": average_precision(self.levels.sum(0)),
            "cross_entropy": float(self.entropy.mean()),
            "knows_where": float(self.apart.nanmean()),
        }


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
        levels = _histograms(probability, batch.rate > 0, batch.valid > 0)
        found = (levels, entropy.double(), torch.where(both, apart.double(), torch.nan), batch.place)
        parts.append(tuple(part.cpu() for part in found))
    return Skill(*[torch.cat(column) for column in zip(*parts)])


def _histograms(probability: Tensor, wet: Tensor, seen: Tensor) -> Tensor:
    """(windows, 2, LEVELS)."""
    windows, rows = len(probability), 2 * LEVELS
    level = leveled(probability) + wet * LEVELS
    cell = level + rows * torch.arange(windows, device=level.device).view(-1, 1, 1, 1)
    found = torch.bincount(torch.where(seen, cell, windows * rows).flatten(), minlength=windows * rows + 1)
    return found[:-1].view(windows, 2, LEVELS)


def entropy_below(one: Skill, other: Skill) -> Interval:
    """How much less surprised the one is than the other, on the same windows."""
    return average(other.entropy - one.entropy, one.places)


def precision_above(one: Skill, other: Skill) -> Interval:
    """How much larger the average precision of the one is than the other's, on the same windows."""
    return pooled_difference(one.levels, other.levels, one.places, average_precisions)
