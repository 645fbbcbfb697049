"""The pieces of the control figures: all agents of one environment, trained in lock-step.

Without a GPU agents train one after the other, on their kept weights: at 95 % a quarter of an hour each.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from fewer.core.errors import UserError
from fewer.core.settings import from_text, nearest
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces, choice
from fewer.systems.control.studies.cohorts import ENVIRONMENTS, RECIPES, train_agents, where
from fewer.systems.control.studies.paper import SEEDS, wanted

__all__ = ["Choices", "catalogue"]


@dataclass(frozen=True)
class Choices:
    """What may be changed."""

    recipes: tuple[str, ...] = choice((), "such as dense,snip:0.95,snip:0.9; empty: all of the figure")
    seeds: tuple[int, ...] = choice((), "such as 0,1,2; empty: the scale's own")
    steps: int | None = choice(None, "updates; none: the scale's own")
    decay_from: float | None = choice(None, "share of the updates after which the rate falls; none: the scale's own")
    save: bool = choice(False, "keep the decoders' weights of seed 0 too")
    compile: bool = choice(False, "fused kernels on CUDA, after a minute of compiling")


def catalogue(order: Order) -> Pieces:
    """One piece an environment."""
    chosen = from_text(Choices, order.words)
    place = where(order)
    falling = place.optimizer.decay_from if chosen.decay_from is None else chosen.decay_from
    place = dataclasses.replace(
        place,
        steps=chosen.steps or place.steps,
        compile=chosen.compile,
        optimizer=dataclasses.replace(place.optimizer, decay_from=falling),
    )
    recipes = [_recipe(word) for word in chosen.recipes] or wanted(order.study, order.scale)
    seeds = chosen.seeds or SEEDS[order.scale]

    def training(environment: str) -> Piece:
        line = f"{len(recipes) * len(seeds)} agents, {place.steps} updates each"
        return Piece(line, lambda: train_agents(place, environment, recipes, seeds, save=chosen.save))

    return Pieces({environment: training(environment) for environment in ENVIRONMENTS}, Choices)


def _recipe(word: str) -> tuple[str, float]:
    name, _, sparsity = word.partition(":")
    if name not in RECIPES:
        raise UserError(f"recipe {name!r}", "a known one", nearest(name, list(RECIPES)))
    try:
        return name, float(sparsity or 0.0)
    except ValueError:
        raise UserError(f"recipe {word!r}", "a sparsity after its name", f"such as {name}:0.95") from None
