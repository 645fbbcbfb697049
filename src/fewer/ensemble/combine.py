"""Ensembles are predictors made of predictors: `[Predict, ...] -> Predict`.

`mean` and `weighted` average in the space in which the task predicts, `majority` lets every member decide first,
`best` is the member with the best metric, in each group of samples its own where the task has groups. Weights and the
best member are chosen on the validation split; another split has to be asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fewer.core.abilities import Grouped, Voting, ability
from fewer.core.engines.evaluate import evaluate
from fewer.core.errors import UserError
from fewer.core.settings import nearest
from fewer.core.system import imported
from fewer.core.task import Predict, Task
from fewer.ensemble import HOW
from fewer.ensemble.groups import best_per_group

__all__ = ["combine"]


def mean(task: Task[Any], members: Sequence[Predict], split: str) -> Predict:
    """The plain mean."""
    return lambda batch: torch.stack([member(batch) for member in members]).mean(0)


def weighted(task: Task[Any], members: Sequence[Predict], split: str) -> Predict:
    """A mean with weights proportional to each member's first metric on the split; one below zero weighs none."""
    metrics = torch.tensor(_metrics(task, members, split)).clamp(min=0)
    weights = metrics / metrics.sum() if bool(metrics.sum() > 0) else torch.ones_like(metrics) / len(metrics)

    def predict(batch: Any) -> Tensor:
        answers = torch.stack([member(batch) for member in members])
        share = weights.to(answers).view(-1, *[1] * (answers.ndim - 1))
        return (share * answers).sum(0)

    return predict


def majority(task: Task[Any], members: Sequence[Predict], split: str) -> Predict:
    """Every member decides, the task counts."""
    voting = ability(task, Voting, "a majority vote")
    return lambda batch: voting.majority(torch.stack([member(batch) for member in members]))


def best(task: Task[Any], members: Sequence[Predict], split: str) -> Predict:
    """The member with the largest first metric on the split, group by group if the task is Grouped."""
    if isinstance(task, Grouped):
        return best_per_group(task, members, split)
    metrics = _metrics(task, members, split)
    return members[metrics.index(max(metrics))]


def combine(task: Task[Any], members: Sequence[Predict], how: str = "mean", *, split: str = "validation") -> Predict:
    """One predictor of many."""
    if how not in HOW:
        raise UserError(f"--how {how}", "a way to combine", nearest(how, list(HOW)))
    if not members:
        raise UserError("an ensemble without members", "at least one run")
    together: Predict = imported(HOW[how])(task, members, split)
    return together


def _metrics(task: Task[Any], members: Sequence[Predict], split: str) -> list[float]:
    return [next(iter(evaluate(task, member, split).values())) for member in members]
