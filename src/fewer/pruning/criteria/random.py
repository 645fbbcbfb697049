"""Keep weights by lot: what every criterion has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.core.task import Noise, Task
from fewer.pruning.criteria.scoring import Modules, Scores, per_objective, weights_of

__all__ = ["random"]


def random(task: Task[Any], modules: Modules, batches: Sequence[Any], noise: Noise) -> Scores:
    """Uniform numbers; with scope `layer` every layer gets the same density, with `erk` Erdos-Renyi-kernel ones."""
    return {
        name: {
            key: noise.uniform(f"prune/{name}/{key}", tuple(weight.shape))
            for key, weight in weights_of(modules[name]).items()
        }
        for _, _, names in per_objective(task, modules)
        for name in names
    }
