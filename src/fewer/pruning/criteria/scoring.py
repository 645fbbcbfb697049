"""What all criteria share: which objective scores which network, and gradients of real modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.engines.layers import batchable
from fewer.core.engines.nets import NetworkSet, frozen
from fewer.core.mask import prunable
from fewer.core.task import Noise, Objective, Task

__all__ = ["Scores", "per_objective", "weights_of"]

Scores = dict[str, dict[str, Tensor]]  # network -> parameter -> one number a weight, larger is kept
Modules = Mapping[str, nn.Module]


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """The prunable parameters by name."""
    return {name: module.get_parameter(name) for name in prunable(module)}


def per_objective(task: Task[Any], modules: Modules) -> Iterator[tuple[Objective[Any], NetworkSet, list[str]]]:
    """Each objective with the networks it is the first to name, and frozen networks to evaluate it on.

    Networks that take another's mask are not scored.
    """
    seen: set[str] = set(task.same_mask())
    nets = frozen(NetworkSet(modules), training=True)
    for objective in task.objectives():
        first = [name for name in objective.trains if name not in seen]
        seen.update(first)
        if first:
            yield objective, nets, first


def gradients(
    objective: Objective[Any],
    nets: NetworkSet,
    names: Sequence[str],
    batch: Any,
    noise: Noise,
    *,
    graph: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    """The prunable weights of those networks and the loss's gradients at them."""
    weights = [weight for name in names for weight in weights_of(nets.modules[name]).values()]
    for weight in weights:
        weight.requires_grad_(True)
    with torch.enable_grad(), batchable() if graph else nullcontext():
        loss = objective.loss(nets, batch, noise)
        found = torch.autograd.grad(loss, weights, create_graph=graph, materialize_grads=True)
    return weights, list(found)


def added(total: list[Tensor] | None, part: Sequence[Tensor]) -> list[Tensor]:
    """The running sum of lists of tensors; None starts it."""
    return list(part) if total is None else [a + b for a, b in zip(total, part)]


def by_name(modules: Modules, names: Sequence[str], values: Sequence[Tensor]) -> Scores:
    """A flat list of tensors as scores by network and parameter."""
    found = iter(values)
    return {name: {key: next(found).detach() for key in weights_of(modules[name])} for name in names}
