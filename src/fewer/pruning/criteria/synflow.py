"""SynFlow (Tanaka, Kunin, Yamins, Ganguli 2020): keep the weights that carry most synaptic flow; looks at no data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.engines.nets import recorded
from fewer.core.errors import UserError
from fewer.core.task import Noise, Task
from fewer.pruning.criteria.scoring import Modules, Scores, per_objective, weights_of
from fewer.pruning.paths.lint import attempted
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
            found = attempted(partial(_flows, modules[name], calls[name]))
            if found is None:
                raise UserError(
                    f"{name}, through which no flow can be followed", "a network of layers that synflow knows",
                    "--prune snip or magnitude",
                )  # fmt: skip
            scores[name] = found
    return scores


def _flows(module: nn.Module, arguments: tuple[Any, ...]) -> dict[str, Tensor]:
    bare = skeleton(module, {key: weight.detach().abs() for key, weight in weights_of(module).items()})
    ones = [
        torch.ones_like(a[:1], dtype=torch.float64) if _floating(a) else a[:1] if torch.is_tensor(a) else a
        for a in arguments
    ]
    with Linearised(), torch.enable_grad():
        flow = bare(*ones).sum()
    weights = weights_of(bare)
    found = torch.autograd.grad(flow, list(weights.values()), materialize_grads=True)
    return {key: (w * g).abs().detach() for (key, w), g in zip(weights.items(), found)}


def _floating(argument: Any) -> bool:
    return torch.is_tensor(argument) and argument.is_floating_point()
