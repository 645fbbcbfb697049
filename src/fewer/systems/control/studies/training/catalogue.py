"""The pieces of the control figures: on CUDA all agents of one environment, trained in lock-step; on a CPU each agent.

A CPU trains an agent on its kept weights: 100,000 updates take three minutes at 99 %, eight at 95 %, two hours dense.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from fewer.core.errors import UserError
from fewer.core.settings import from_text, nearest
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces, choice
from fewer.systems.control.studies.training.cohorts import train_agents
from fewer.systems.control.studies.training.recipes import Recipe, recipe_of
from fewer.systems.control.studies.training.scales import ENVIRONMENTS, SEEDS, Place, wanted, where

__all__ = ["Choices", "catalogue", "changed", "pieces_at"]


@dataclass(frozen=True)
class Choices:
    """What may be changed."""

    recipes: tuple[str, ...] = choice((), "such as dense,snip:0.95,snip:0.9; empty: all of the study")
    environments: tuple[str, ...] = choice((), "such as hopper,walker2d; empty: all three")
    seeds: tuple[int, ...] = choice((), "such as 0,1,2; empty: the scale's own")
    steps: int | None = choice(None, "updates; none: the scale's own")
    decay_from: float | None = choice(None, "share of the updates after which the rate falls; none: the scale's own")
    device: str | None = choice(None, "cpu beside a GPU that others use; none: cuda where there is one")
    save: bool = choice(False, "keep the decoders' weights of seed 0 too")
    compile: bool = choice(True, "fused kernels on CUDA, after a minute of compiling")

    def __post_init__(self) -> None:
        for name in self.environments:
            if name not in ENVIRONMENTS:
                raise UserError(f"environment {name!r}", "one of the paper's", nearest(name, ENVIRONMENTS))


def changed(place: Place, chosen: Choices) -> Place:
    """The scale's place with what somebody chose."""
    device = chosen.device or place.device
    alone = device == "cpu" and (place.alone or place.device != "cpu")
    falling = place.optimizer.decay_from if chosen.decay_from is None else chosen.decay_from
    return dataclasses.replace(
        place, steps=chosen.steps or place.steps, device=device, alone=alone,
        compile=chosen.compile and device != "cpu",
        optimizer=dataclasses.replace(place.optimizer, decay_from=falling),
    )  # fmt: skip


def pieces_at(
    place: Place, recipes: Sequence[Recipe], chosen: Choices, seeds: Sequence[int], prefix: str = ""
) -> dict[str, Piece]:
    """Environments, and where agents are trained alone also each of them."""
    found = {}
    for environment in chosen.environments or ENVIRONMENTS:
        train = partial(train_agents, place, environment, save=chosen.save)
        line = f"{len(recipes) * len(seeds)} agents, {place.steps} updates each"
        found[prefix + environment] = Piece(line, partial(train, recipes, seeds), whole=not place.alone)
        for recipe, seed in product(recipes, seeds) if place.alone else ():
            name = place.path(environment, *recipe, seed).stem
            found[f"{prefix}{environment}-{name}"] = Piece("this agent alone", partial(train, [recipe], [seed]))
    return found


def catalogue(order: Order) -> Pieces:
    """One piece an environment, or an agent."""
    chosen = from_text(Choices, order.words)
    recipes = [recipe_of(word) for word in chosen.recipes] or wanted(order.study, order.scale)
    place = changed(where(order), chosen)
    return Pieces(pieces_at(place, recipes, chosen, chosen.seeds or SEEDS[order.scale]), Choices)
