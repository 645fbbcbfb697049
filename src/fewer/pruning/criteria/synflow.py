"""SynFlow (Tanaka, Kunin, Yamins, Ganguli 2020): keep the weights that carry most synaptic flow; looks at no data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fewer.core.engines.nets import recorded
from fewer.core.task import Noise, Task
from fewer.pruning.criteria.scoring import Modules, Scores, per_objective, weights_of
from fewer.pruning.paths.skeleton import Linearised, skeleton

__all__ = ["synflow"]


def synflow(task: Task[Any], modules: Modules, batches: Sequence[Any], noise: Noise) -> Scores:
    """|w * dR/dw|, R the sum of the outputs for inputs of ones with every weight made positive.

    The batch only tells the shapes of each network's inputs. Meant for many iterations (100 by default).
    """
    scores: Scores = {}
    for objective, nets, names in per_objective(task, modules):
        watched, calls = recorded(nets)
        with torch.no_grad():
            objective.loss(watched, batches[0], noise)
        for name in names:
            positive = {key: weight.detach().abs() for key, weight in weights_of(modules[name]).items()}
            bare = skeleton(modules[name], positive)
            ones = [
                torch.ones_like(a[:1], dtype=torch.float64) if _floating(a) else a[:1] if torch.is_tensor(a) else a
                for a in calls[name]
            ]
            with Linearised(), torch.enable_grad():
                flow = bare(*ones).sum()
            weights = weights_of(bare)
            found = torch.autograd.grad(flow, list(weights.values()), materialize_grads=True)
            scores[name] = {key: (w * g).abs().detach() for (key, w), g in zip(weights.items(), found)}
    return scores


def _floating(argument: Any) -> bool:
    return torch.is_tensor(argument) and argument.is_floating_point()
