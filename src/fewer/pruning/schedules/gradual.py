"""Masks that change while training: gradually sparser, or dropping and growing at constant sparsity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fewer.core.engines.base import Engine
from fewer.core.seed import Stream
from fewer.pruning.criteria.scoring import by_name, gradients, per_objective
from fewer.pruning.follow import followed
from fewer.pruning.pruning import Pruning, prune_, samples

__all__ = ["DropAndGrow", "Gradual", "events_for"]


def _times(pruning: Pruning, steps: int, begin: float) -> range:
    every = pruning.every or max(1, steps // 100)
    final = max(steps - 1, 0)  # events act before a step: later than this, the goal would never be reached
    first, last = min(round(begin * steps), final), min(round(pruning.end * steps), final)
    return range(first, max(last, first) + 1, every)


class Gradual:
    """Zhu and Gupta's cubic: sparsity(t) = s * (1 - (1 - t)^3) between two shares of the run, masks nested."""

    def __init__(self, prunings: Mapping[int, Pruning], steps: int) -> None:
        self.prunings = prunings  # by replica; times are the first one's
        first = next(iter(prunings.values()))
        self.times = _times(first, steps, first.begin)

    def next(self, step: int) -> int | None:
        return next((time for time in self.times if time >= step), None)

    def sparsity(self, pruning: Pruning, step: int) -> float:
        """At one of the times."""
        progress = (self.times.index(step) + 1) / len(self.times)
        return pruning.sparsity if progress == 1 else pruning.sparsity * (1 - (1 - progress) ** 3)

    def act(self, engine: Engine) -> None:
        for replica, pruning in self.prunings.items():
            sparsity = self.sparsity(pruning, engine.count)
            quota = min(pruning.layer_quota, 1 - sparsity)
            prune_(engine, replace(pruning, sparsity=sparsity, layer_quota=quota), replica)


class DropAndGrow:
    """SET (Mocanu 2018) grows at random, RigL (Evci 2020) where the gradient is largest; each layer keeps its count."""

    def __init__(self, prunings: Mapping[int, Pruning], steps: int) -> None:
        self.prunings = prunings  # by replica; times are the first one's
        self.times = _times(next(iter(prunings.values())), steps, 0.0)[1:]

    def next(self, step: int) -> int | None:
        return next((time for time in self.times if time >= step), None)

    def act(self, engine: Engine) -> None:
        progress = self.times.index(engine.count) / max(len(self.times), 1)
        for replica, pruning in self.prunings.items():
            share = pruning.swap * 0.5 * (1 + math.cos(math.pi * progress))
            engine.state.mask_(replica, self._swapped(engine, pruning, replica, share))

    def _swapped(self, engine: Engine, pruning: Pruning, replica: int, share: float) -> dict[str, dict[str, Tensor]]:
        task, state = engine.task, engine.state
        modules, mask = state.modules_of(replica), state.mask_of(replica)
        seed, device = state.seeds[replica], engine.device
        like = next(iter(state.networks.values())).weights
        noise = Stream(torch.tensor(seed, device=device), torch.tensor(engine.count, device=device), like.dtype)
        batch = samples(task, seed + engine.count, count=pruning.samples, of=1, like=like)[0]
        swapped: dict[str, dict[str, Tensor]] = {}
        for objective, nets, names in per_objective(task, modules):
            weights, found = gradients(objective, nets, names, batch, noise)
            grown = by_name(modules, names, [gradient.abs() for gradient in found])
            values = by_name(modules, names, weights)
            for net in names:
                swapped[net] = {}
                for key, value in values[net].items():
                    lot = noise.uniform(f"grow/{net}/{key}", tuple(value.shape))
                    wish = grown[net][key] if pruning.when == "rigl" else lot
                    swapped[net][key] = _swap(mask[net][key], value.abs(), wish, share)
        return followed(task, swapped)


def _swap(mask: Tensor, size: Tensor, wish: Tensor, share: float) -> Tensor:
    """Drop the smallest kept weights, grow as many pruned ones; a weight just dropped does not come back at once."""
    count = min(int(share * int(mask.sum())), int((~mask).sum()))
    if count == 0:
        return mask
    flat = mask.reshape(-1).clone()
    smallest = torch.where(flat, size.reshape(-1), torch.inf).sort(stable=True).indices[:count]
    wanted = torch.where(flat, -torch.inf, wish.reshape(-1)).sort(descending=True, stable=True).indices[:count]
    flat[smallest] = False
    flat[wanted] = True
    return flat.view(mask.shape)


def events_for(prunings: Sequence[Pruning | None], steps: int) -> list[Gradual | DropAndGrow]:
    """What has to happen during training, from one setting a replica; those that change alike share an event."""
    groups: dict[tuple[type[Gradual | DropAndGrow], float, float, int], dict[int, Pruning]] = {}
    for replica, pruning in enumerate(prunings):
        if pruning is not None and pruning.when in _EVENTS:
            key = (_EVENTS[pruning.when], pruning.begin, pruning.end, pruning.every)
            groups.setdefault(key, {})[replica] = pruning
    return [kind(group, steps) for (kind, *_), group in groups.items()]


_EVENTS: dict[str, type[Gradual | DropAndGrow]] = {"gradual": Gradual, "set": DropAndGrow, "rigl": DropAndGrow}
