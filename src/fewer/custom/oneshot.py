"""A network pruned at once, without training and without a run folder."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.registry import make
from fewer.custom.given import give
from fewer.pruning.pruning import mask_for, patterns
from fewer.pruning.reach import refuse_unreachable
from fewer.pruning.recipe import parse_prune

__all__ = ["hold_", "pruned"]


def pruned(model: nn.Module, data: Any, method: str, more: Mapping[str, Any], seed: int) -> nn.Module:
    """A copy with pruned weights zero, held there."""
    pruning = parse_prune(method, [f"{key}={value}" for key, value in more.items()])
    if pruning is None or pruning.when != "start":
        raise UserError(
            f"pruning by {method!r} at once", "a criterion, with when=start", "fewer.train prunes over time"
        )
    name, settings, held = give(model, data)
    task = make(name, settings)
    task.only, task.whole = patterns(pruning.only), patterns(pruning.skip)
    modules = fresh_modules(task, seed)
    refuse_unreachable(task, modules)
    samples = min(pruning.samples, len(task.data("train")))
    mask = mask_for(task, modules, dataclasses.replace(pruning, samples=samples), seed=seed)["net"]
    del held
    return hold_(copy.deepcopy(model), mask)


def hold_(module: nn.Module, mask: Mapping[str, Tensor]) -> nn.Module:
    """Make pruned weights zero, and take their gradients, so that no optimiser of torch's moves them again."""
    for name, kept in mask.items():
        parameter = module.get_parameter(name)
        kept = kept.to(parameter.device)
        with torch.no_grad():
            parameter.masked_fill_(~kept, 0.0)
        parameter.register_hook(lambda gradient, kept=kept: gradient * kept)
    return module
