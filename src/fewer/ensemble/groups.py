"""For each group of samples the member that answers it best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fewer.core.abilities import Grouped
from fewer.core.engines.evaluate import answered
from fewer.core.task import Predict

__all__ = ["best_per_group", "choices"]


def choices(task: Grouped, members: Sequence[Predict], split: str) -> dict[int, int]:
    """Which member has the largest metric in each group of the split; the first of equals.

    The group -1 stands for all that the split does not have: the largest mean over groups.
    """
    found = [answered(task.evaluate_groups(split), member) for member in members]
    groups = sorted(set().union(*found))
    chosen = {group: _first_best([metrics[group] for metrics in found]) for group in groups}
    return chosen | {-1: _first_best([sum(metrics.values()) for metrics in found])}


def best_per_group(task: Grouped, members: Sequence[Predict], split: str) -> Predict:
    """A predictor that asks, for every sample, the member chosen for its group."""
    chosen = choices(task, members, split)

    def predict(batch: Any) -> Tensor:
        groups = task.groups(batch).tolist()
        member = torch.tensor([chosen.get(group, chosen[-1]) for group in groups])
        parts, rows = [], []
        for index in member.unique().tolist():
            mine = (member == index).nonzero()[:, 0]
            parts.append(members[index](pytree.tree_map(lambda leaf, mine=mine: leaf[mine.to(leaf.device)], batch)))
            rows.append(mine)
        together = torch.cat(parts)
        return together[torch.cat(rows).argsort().to(together.device)]

    return predict


def _first_best(metrics: Sequence[float]) -> int:
    return max(range(len(metrics)), key=metrics.__getitem__)
