"""Which part of a model pruning reaches, in numbers: all parameters, and the prunable ones among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from fewer.core.count import Count
from fewer.core.errors import UserError
from fewer.core.mask import Mask, prunable
from fewer.core.task import Task
from fewer.pruning.follow import followed
from fewer.pruning.pruning import Pruning

__all__ = ["beyond_reach", "count", "refuse_partial"]

Modules = Mapping[str, nn.Module]
_MOST = 0.05  # of all parameters, in weight matrices that pruning cannot touch
_NAMED = 4


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


def beyond_reach(task: Task[Any], modules: Modules) -> dict[str, int]:
    """Weight matrices of trained networks that pruning cannot touch, such as a GRU's, and their sizes."""
    found = {
        f"{network}.{key}": parameter.numel()
        for network, module in _own(task, modules).items()
        if network in _reached(task)
        for key, parameter in module.named_parameters()
        if parameter.ndim >= 2 and key not in prunable(module)
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def refuse_partial(task: Task[Any], modules: Modules, pruning: Pruning) -> None:
    """An error where the sparsity would be one of a part alone, unless that is what was asked for."""
    found = {name: size for name, size in beyond_reach(task, modules).items() if name not in task.whole}
    everything = sum(p.numel() for module in _own(task, modules).values() for p in module.parameters())
    if pruning.partial or sum(found.values()) <= _MOST * everything:
        return
    names = ", ".join(list(found)[:_NAMED]) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")
    share = f"{sum(found.values()):,} of {everything:,} weights, {100 * sum(found.values()) / everything:.0f} %"
    raise UserError(
        f"weight matrices that pruning cannot touch, {names} ({share})", f"at most {100 * _MOST:g} % in such",
        f"--prune {pruning.method},partial=true prunes the rest alone",
    )  # fmt: skip


def _own(task: Task[Any], modules: Modules) -> dict[str, nn.Module]:
    copies = task.copies()
    return {name: module for name, module in modules.items() if name not in copies}


def _reached(task: Task[Any]) -> set[str]:
    """Networks that an objective trains, and those that follow them."""
    return set(followed(task, {name: {} for objective in task.objectives() for name in objective.trains}))
