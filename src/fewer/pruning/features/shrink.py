"""Shrinking a network feature by feature: score the features, remove the worst for good, train on, repeat.

The task decides what training on means: a hardened task is fine-tuned adversarially, and its features are best
scored by their robust usefulness. On a network that was never hardened hardly any feature is robustly useful, so the
order that robust usefulness gives there means little.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.abilities import Featured, ability
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.loop import fit
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.core.task import Task
from fewer.pruning.features.structured import best_features, feature_layer, remove_features
from fewer.pruning.features.usefulness import Reach, usefulness

__all__ = ["MEASURES", "Shrinking", "Stage", "feature_order", "shrink"]

MEASURES = ("robust", "useful", "magnitude", "random")


@dataclass(frozen=True)
class Shrinking:
    """What a feature is worth, and how many go at a time."""

    measure: str = "robust"  # robust: least usefulness under attack, ties by plain usefulness
    share: float = 0.3  # of the features that are left, removed in each round
    least: int = 5  # features never gone below
    split: str = "validation"  # where usefulness is measured: neither trained on nor tested on
    samples: int = 100
    reach: Reach = field(default_factory=Reach)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise UserError(f"measure {self.measure!r}", f"one of {', '.join(MEASURES)}")
        if not 0 < self.share < 1 or self.least < 1 or self.samples < 1:
            raise UserError(
                f"removing {self.share} a round down to {self.least}, measured on {self.samples} samples",
                "a share between 0 and 1, at least one feature and one sample",
            )


@dataclass(frozen=True)
class Stage:
    """The networks after a round, and which of the features at its beginning were kept."""

    modules: dict[str, nn.Module]
    kept: Tensor


def feature_order(
    task: Task[Any], modules: Mapping[str, nn.Module], shrinking: Shrinking, *, number: int = 0
) -> tuple[Tensor, Tensor]:
    """(features,) twice: the score, and what decides between equal scores."""
    network, parameter = ability(task, Featured, "shrinking").head()  # type: ignore[type-abstract]
    module, head = modules[network], parameter.removesuffix(".weight")
    before, after = module.get_submodule(feature_layer(module, head)), module.get_parameter(parameter).detach()
    if shrinking.measure == "random":
        noise = Stream(torch.tensor(shrinking.seed), torch.tensor(number))
        lot = noise.uniform("shrink", (after.shape[1],)).to(after.device)
        return lot, lot
    # A ReLU feature can be scaled up here and down there; the product of the two norms does not care.
    size = before.get_parameter("weight").detach().norm(dim=1) * after.norm(dim=0)
    if shrinking.measure == "magnitude":
        return size, size
    reach = shrinking.reach if shrinking.measure == "robust" else None
    found = usefulness(task, modules, split=shrinking.split, limit=shrinking.samples, reach=reach)
    # A dead feature scores zero, above those that harm under attack: it is of no use and goes first.
    score = found.score("robust_raw" if reach else "raw").masked_fill(found.dead, -torch.inf)
    return score, found.score("raw")


def shrink(
    task: Task[Any],
    modules: Mapping[str, nn.Module],
    shrinking: Shrinking,
    *,
    training: Training,
) -> Iterator[Stage]:
    """One stage a round until `least` features are left; stop asking when the network has become too small.

    Each round trains `training.steps` steps from where the last one ended, with fresh optimiser state.
    """
    network, parameter = ability(task, Featured, "shrinking").head()  # type: ignore[type-abstract]
    head, number = parameter.removesuffix(".weight"), 0
    current = {name: copy.deepcopy(module) for name, module in modules.items()}  # an engine takes modules over
    while (size := current[network].get_parameter(parameter).shape[1]) > shrinking.least:
        score, tie = feature_order(task, current, shrinking, number=number)
        kept = best_features(score, max(shrinking.least, size - max(1, round(shrinking.share * size))), tie=tie)
        current = {**current, network: remove_features(current[network], kept, head=head)}
        seed = shrinking.seed + number
        engine: Engine
        if training.device == "cpu":
            engine = Plain(task, training, seed, modules=current)
        else:  # a captured graph, which a small network needs on a GPU
            engine = Cohort(task, training, [seed], modules=[current])
        fit(engine)
        current, number = engine.state.modules_of(0), number + 1
        yield Stage(current, kept)
