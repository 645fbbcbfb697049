"""A task's metrics under attack, whatever kind of task it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from fewer.attack.audit import Audit, attacked, robust
from fewer.core.abilities import Attackable, Classifier, ability
from fewer.core.engines.evaluate import evaluate
from fewer.core.engines.nets import NetworkSet
from fewer.core.limited import Limited
from fewer.core.task import Task

__all__ = ["under_attack"]


def under_attack(
    task: Task[Any],
    modules: Mapping[str, nn.Module],
    attack: str,
    *,
    split: str = "test",
    limit: int | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """A classifier's robust accuracy, each number with its attack; any other task's own metrics when attacked.

    `limit`: of the first so many samples of the split.
    """
    ability(task, Attackable, "an attack")
    nets = NetworkSet(modules, training=False)
    if isinstance(task, Classifier):
        return robust(task, nets, attack, Audit(split=split, limit=limit, seed=seed)).metrics()
    judged = task if limit is None else Limited(task, limit)
    return evaluate(judged, attacked(judged, nets, attack, seed=seed), split)
