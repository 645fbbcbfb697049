"""Only weights on a path from an input to an output: any other one is stored, counted and multiplied for nothing.

Magnitudes know nothing of paths: where few weights are left, some feed a unit that nobody reads, or read one that
nothing feeds. They make room for the best of the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from fewer.core.mask import Mask
from fewer.pruning.criteria.scoring import Scores
from fewer.pruning.paths.lint import attempted, on_paths

__all__ = ["connected"]

Name = tuple[str, str]  # network, parameter
Flags = dict[Name, Tensor]
ROUNDS = 20  # exchanges of weights on no path for the next best, before only those will do that work at once


class Wish(Protocol):
    """The settings read here."""

    @property
    def scope(self) -> str: ...
    @property
    def layer_quota(self) -> float: ...


def connected(
    scores: Scores,
    found: Mask,
    modules: Mapping[str, nn.Module],
    calls: Mapping[str, tuple[Any, ...]],
    wish: Wish,
    *,
    within: Mask,
) -> dict[str, dict[str, Tensor]]:
    """The mask found, with the next best for the weights that lie on no path; fewer where none are left.

    Each layer keeps its count where the scope ranks layers apart, and its quota, as long as it has such weights.
    """
    calls = {
        net: calls[net] for net, by_name in found.items() if net in calls and _works(modules[net], by_name, calls[net])
    }
    kept = _flat({net: found[net] for net in calls})
    free = {(net, key): within.get(net, {}).get(key, torch.ones_like(kept[net, key])) for net, key in kept}
    goal = {name: int(some.sum()) for name, some in kept.items()}
    layers, networks = [[name] for name in kept], [[name for name in kept if name[0] == net] for net in calls]
    groups = {"global": [list(kept)], "network": networks}.get(wish.scope, layers)
    least = {name: min(goal[name], math.ceil(wish.layer_quota * some.numel())) for name, some in kept.items()}
    for turn in range(ROUNDS + 1):
        useful = _flat({net: on_paths(modules[net], _of(net, kept), call) for net, call in calls.items()})
        if turn and not any(bool((kept[name] & ~some).any()) for name, some in useful.items()):
            break
        for name, some in useful.items():
            free[name] = free[name] & (some if turn == ROUNDS else some | ~kept[name])
            kept[name] = kept[name] & some
        for names in layers:
            _fill_(kept, scores, free, names, least[names[0]])
        for names in groups:
            _fill_(kept, scores, free, names, sum(goal[name] for name in names))
    # what a layer could not take, the others may, of those that work as soon as they are kept
    useful = _flat({net: on_paths(modules[net], _of(net, kept), call) for net, call in calls.items()})
    free = {name: free[name] & some for name, some in useful.items()}
    for names in networks:
        _fill_(kept, scores, free, names, sum(goal[name] for name in names))
    return {net: _of(net, kept) if net in calls else dict(by_name) for net, by_name in found.items()}


def _works(module: nn.Module, mask: Mapping[str, Tensor], arguments: tuple[Any, ...]) -> bool:
    """Whether anything leads from an input to an output; if not, that is told by the lint and no exchange helps."""
    found = attempted(lambda: on_paths(module, mask, arguments)) or {}
    return any(bool((mask[key] & some).any()) for key, some in found.items())


def _flat(mask: Mask) -> Flags:
    return {(net, key): some for net, by_name in mask.items() for key, some in by_name.items()}


def _of(net: str, flags: Flags) -> dict[str, Tensor]:
    return {key: some for (network, key), some in flags.items() if network == net}


def _fill_(kept: Flags, scores: Scores, free: Flags, names: Sequence[Name], goal: int) -> None:
    """Keep the best of the free ones too, until the layers named have as many as they should."""
    missing = goal - sum(int(kept[name].sum()) for name in names)
    if missing <= 0:
        return
    ranked = [
        torch.where(free[net, key] & ~kept[net, key], scores[net][key].to(torch.float64), -torch.inf).reshape(-1)
        for net, key in names
    ]
    together = torch.cat(ranked)
    best = torch.sort(together, descending=True, stable=True).indices[:missing]
    added = torch.zeros_like(together, dtype=torch.bool)
    added[best] = together[best] > -torch.inf
    for name, part in zip(names, added.split([len(part) for part in ranked])):
        kept[name] = kept[name] | part.view_as(kept[name])
