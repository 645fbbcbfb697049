"""Which part of a model pruning reaches, in numbers: all parameters, and the prunable ones among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from fewer.core.count import Count
from fewer.core.errors import UserError
from fewer.core.mask import Mask, named, prunable
from fewer.core.task import Task
from fewer.pruning.follow import followed

__all__ = ["count", "refuse_unreachable"]

Modules = Mapping[str, nn.Module]


def count(task: Task[Any], modules: Modules, mask: Mask) -> Count:
    """What there is and what the mask leaves of it."""
    names = _reached(task)
    weights = touched = gone = 0
    for network, module in _own(task, modules).items():
        can = set(prunable(module)) if network in names else set()
        for key, parameter in module.named_parameters():
            weights += parameter.numel()
            touched += parameter.numel() if key in can else 0
            if key in can and key in mask.get(network, {}):
                gone += int((~mask[network][key]).sum())
    return Count(weights, weights - gone, touched, touched - gone)


def refuse_unreachable(task: Task[Any], modules: Modules) -> None:
    """An error where there is nothing to prune, or where a pattern names nothing."""
    names = {f"{network}.{key}" for network, module in modules.items() for key, _ in module.named_parameters()}
    for pattern in (*task.only, *task.whole):
        known = [name for name in names if named(name, (pattern, f"*.{pattern}"))]
        if not known and pattern not in type(task).whole:
            some = sorted(names)[0]
            raise UserError(f"no parameter called {pattern}", f"a pattern of their names, such as {some}")
    if not any(prunable(module) for network, module in modules.items() if network in _reached(task)):
        raise UserError(
            "networks without a weight that pruning may touch", "a matrix or a kernel in one of them",
            "leave --prune out, or say more with --only and less with --skip",
        )  # fmt: skip


def _own(task: Task[Any], modules: Modules) -> dict[str, nn.Module]:
    copies = task.copies()
    return {name: module for name, module in modules.items() if name not in copies}


def _reached(task: Task[Any]) -> set[str]:
    """Networks that an objective trains, and those that follow them."""
    return set(followed(task, {name: {} for objective in task.objectives() for name in objective.trains}))
