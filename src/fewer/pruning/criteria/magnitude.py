"""Keep the largest weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.core.task import Noise, Task
from fewer.pruning.criteria.scoring import Modules, Scores, per_objective, weights_of

__all__ = ["magnitude"]


def magnitude(task: Task[Any], modules: Modules, batches: Sequence[Any], noise: Noise) -> Scores:
    """|w|. Needs no data; of little use before training."""
    return {
        name: {key: weight.detach().abs() for key, weight in weights_of(modules[name]).items()}
        for _, _, names in per_objective(task, modules)
        for name in names
    }
