"""Weights that pruning must leave: a share of every layer, a number of first weights for every input group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.core.mask import Mask
from fewer.pruning.criteria.scoring import Scores
from fewer.pruning.paths.lint import attempted
from fewer.pruning.paths.skeleton import Linearised, skeleton
from fewer.pruning.paths.units import constant, reads

__all__ = ["reserve"]


class Quota(Protocol):
    """The settings read here."""

    @property
    def layer_quota(self) -> float: ...
    @property
    def input_quota(self) -> int: ...


def reserve(
    scores: Scores,
    kept: Mask,
    modules: Mapping[str, nn.Module],
    calls: Mapping[str, tuple[Any, ...]],
    quota: Quota,
    *,
    within: Mask,
) -> dict[str, dict[str, Tensor]]:
    """Of those within, the best of each layer and of each input group, as many as their quotas say.

    An input group is one argument of the network; its first weights are the columns that only it feeds. They are
    chosen among units that still reach an output, so that they open a path.
    """
    reserved: dict[str, dict[str, Tensor]] = {}
    for net, by_name in scores.items():
        reserved[net] = {}
        allowed = {
            key: within.get(net, {}).get(key, torch.ones_like(score, dtype=torch.bool))
            for key, score in by_name.items()
        }
        for key, score in by_name.items():
            count = math.ceil(quota.layer_quota * score.numel())
            reserved[net][key] = _best(score, allowed[key], count)
        if quota.input_quota and net in calls:
            found = attempted(partial(_first_weights, modules[net], kept[net], calls[net]))
            if found is None:
                raise UserError(f"input_quota for {net}, which cannot be followed", "layers that can", "leave it out")
            for key, group in found:
                reserved[net][key] |= _best(by_name[key], group & allowed[key], quota.input_quota)
    return reserved


def _best(score: Tensor, allowed: Tensor, count: int) -> Tensor:
    ranked = torch.where(allowed, score.to(torch.float64), -torch.inf).reshape(-1)
    chosen = torch.zeros_like(ranked, dtype=torch.bool)
    chosen[torch.sort(ranked, descending=True, stable=True).indices[: min(count, int(allowed.sum()))]] = True
    return chosen.view(score.shape)


def _first_weights(
    module: nn.Module, kept: Mapping[str, Tensor], arguments: tuple[Any, ...]
) -> list[tuple[str, Tensor]]:
    """For every input group, the layers' weights in columns that this group alone feeds, of units that matter."""
    groups = [i for i, a in enumerate(arguments) if torch.is_tensor(a) and a.is_floating_point()]
    fed = [_fed_columns(module, arguments, index) for index in groups]
    useful = reads(module, kept, arguments)
    found = []
    for position in range(len(groups)):
        for layer, columns in fed[position].items():
            others = torch.zeros_like(columns)
            for other, by_layer in enumerate(fed):
                if other != position and layer in by_layer:
                    others |= by_layer[layer]
            exclusive = columns & ~others
            key = f"{layer}.weight" if layer else "weight"
            if bool(exclusive.any()) and key in kept:
                weight = kept[key]
                shape = (1, -1) + (1,) * (weight.ndim - 2)
                rows = useful[layer].view(-1, *(1,) * (weight.ndim - 1))
                found.append((key, (exclusive.view(shape) & rows).expand_as(weight)))
    return found


def _fed_columns(module: nn.Module, arguments: tuple[Any, ...], active: int) -> dict[str, Tensor]:
    """Per layer, which of its inputs change when one argument of the unpruned network does."""
    seen: list[dict[str, Tensor]] = []
    bare = skeleton(module, {})
    for value in (0.0, 1.0):
        seen.append(_layer_inputs(bare, arguments, {active: value}))
    return {layer: (seen[1][layer] != seen[0][layer]) for layer in seen[0]}


def _layer_inputs(bare: nn.Module, arguments: tuple[Any, ...], values: Mapping[int, float]) -> dict[str, Tensor]:
    inputs: dict[str, Tensor] = {}

    def note(name: str, part: nn.Module, argument: Tensor) -> None:
        axis = -1 if isinstance(part, nn.Linear) else 1
        inputs.setdefault(name, argument.detach().movedim(axis, 0).reshape(argument.shape[axis], -1).sum(1))

    hooks = [
        part.register_forward_pre_hook(lambda module, args, name=name: note(name, module, args[0]))
        for name, part in bare.named_modules()
        if isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)
    ]
    with torch.no_grad(), Linearised():
        bare(*constant(arguments, values))
    for hook in hooks:
        hook.remove()
    return inputs
