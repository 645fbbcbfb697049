"""Every piece of the vision studies by name, with what it costs."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

from fewer.core.settings import from_text
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces, choice
from fewer.systems.vision.studies.capacity import capacity_pieces
from fewer.systems.vision.studies.light.lightest import audit, light_pieces, small_pieces, train_features, train_scores
from fewer.systems.vision.studies.lottery import TRAININGS, lottery_cost, train_tickets
from fewer.systems.vision.studies.pieces import Place, Recipe, images, run_piece, where

__all__ = ["Choices", "catalogue"]

_ATTACKS = {"vision/table2": ("pgd",), "vision/table3": ("fgsm",), "vision/fig2-3": ("fgsm", "pgd")}


@dataclass(frozen=True)
class Choices:
    """What may be changed."""

    seeds: tuple[int, ...] = choice((), "such as 0,1,2; empty: the piece's own")
    together: int | None = choice(None, "replicas in one cohort; 0: all; none: the piece's own")


def catalogue(order: Order) -> Pieces:
    """The pieces of the capacity tables, of the lightest networks, or of the lottery."""
    chosen, scale = from_text(Choices, order.words), order.scale

    @functools.cache
    def place() -> Place:
        images(scale)  # a study can be put together without them, a piece cannot be trained
        return where(order)

    def asked(recipe: Recipe) -> Recipe:
        together = recipe.together if chosen.together is None else chosen.together
        return dataclasses.replace(recipe, seeds=chosen.seeds or recipe.seeds, together=together)

    def training(recipe: Recipe) -> Piece:
        return Piece(_cost(asked(recipe)), lambda: run_piece(asked(recipe), place()))

    def auditing(recipe: Recipe) -> Piece:
        cost = f"the whole attack suite on {len(asked(recipe).replicas)} networks of {recipe.network}"
        return Piece(cost, lambda: audit(scale, asked(recipe), place()), late=True)

    def playing(kind: str) -> Piece:
        return Piece(lottery_cost(scale, kind), lambda: train_tickets(kind, scale, place()))

    if order.study == "vision/fig9-12":
        return Pieces({f"lottery-{kind}": playing(kind) for kind in TRAININGS}, Choices)
    if attacks := _ATTACKS.get(order.study, ()):
        recipes = {name: recipe for attack in attacks for name, recipe in capacity_pieces(attack, scale).items()}
        return Pieces({name: training(recipe) for name, recipe in recipes.items()}, Choices)
    scores = "scores, then weights, of the unpruned cured-pgd-cnn3, three densities"
    features = "half of the features of cured-pgd-cnn3 each round, by four measures"
    every = {name: training(recipe) for name, recipe in light_pieces(scale).items()}
    every |= {f"suite-{name}": auditing(recipe) for name, recipe in small_pieces(scale).items()}
    every["hydra"] = Piece(scores, lambda: train_scores(scale, place(), chosen.seeds), late=True)
    every["features"] = Piece(features, lambda: train_features(scale, place()))
    return Pieces(every, Choices)


def _cost(recipe: Recipe) -> str:
    count, size = len(recipe.replicas), recipe.together or len(recipe.replicas)
    return (
        f"{recipe.network}, {count} replicas, {size} in a cohort: {-(-count // size) * recipe.steps} cohort steps "
        f"of batch {recipe.batch}, {recipe.hardening or 'not hardened'}"
    )
