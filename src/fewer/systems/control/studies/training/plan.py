"""Every training of the control studies, so that its time can be told before it starts."""

from __future__ import annotations

import dataclasses
from functools import partial

from fewer.core.engines.base import Engine
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.pruning.pruning import Pruning, prune_
from fewer.sparse.engine import sparse_engine, worthwhile
from fewer.studies.order import Order
from fewer.studies.plan import Planned
from fewer.systems.control.studies.training.cohorts import pruning_of, training_of
from fewer.systems.control.studies.training.recipes import Recipe
from fewer.systems.control.studies.training.scales import SEEDS, Place, environments, wanted, where

__all__ = ["planned", "planned_at"]

_TRANSITIONS = 2000  # of our experts: how many there are does not change the rate
_SCORINGS = 2  # on so many batches, in so many rounds: masks of the same size train as fast


def planned(order: Order) -> list[Planned]:
    """On CUDA a cohort for each environment; on a CPU the agents of a recipe, one after the other."""
    return planned_at(where(order), wanted(order.study, order.scale), order.scale)


def planned_at(place: Place, recipes: list[Recipe], scale: str, prefix: str = "") -> list[Planned]:
    """The same of one kind of logs; where they are ours, a few of the expert's stand in for them."""
    small = dataclasses.replace(place.settings, transitions=min(_TRANSITIONS, place.settings.transitions))
    place = dataclasses.replace(place, settings=small, kind=place.kind if place.folder else "expert")
    seeds, worlds = SEEDS[scale], environments(scale)
    if not place.alone:
        count = len(recipes) * len(seeds)
        return [
            Planned(f"{prefix}{world}, {count} agents", place.steps, partial(_cohort, place, world, count))
            for world in worlds
        ]
    times = len(seeds) * len(worlds)
    return [
        Planned(f"{prefix}{name} {100 * sparsity:g} %, {times} agents", place.steps,
                partial(_alone, place, worlds[-1], (name, sparsity)), times)
        for name, sparsity in recipes
    ]  # fmt: skip


def _cohort(place: Place, world: str, count: int) -> Engine:
    """Masks are left out: they do not change the rate of a cohort."""
    return Cohort(place.task(world), training_of(place), range(count))


def _alone(place: Place, world: str, recipe: Recipe) -> Engine:
    engine: Engine = Plain(place.task(world), training_of(place), 0)
    pruning = pruning_of(place, recipe)
    if pruning is not None and pruning.when != "gradual":
        try:
            prune_(engine, _quickly(pruning))
        except UserError:
            return engine  # nothing will be trained where a mask is refused; what is told is the most it can take
    if worthwhile(engine):
        engine = sparse_engine(engine)
    engine.begin_()
    return engine


def _quickly(pruning: Pruning) -> Pruning:
    few = min(_SCORINGS, pruning.batches), min(_SCORINGS, pruning.iterations)
    return dataclasses.replace(pruning, batches=few[0], iterations=few[1])
