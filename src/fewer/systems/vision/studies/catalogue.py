"""Every piece of the vision studies by name, what an order stands for, and what it would train."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Engine
from fewer.core.engines.cohort import Cohort
from fewer.core.settings import from_text
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces, choice
from fewer.studies.plan import Planned
from fewer.systems.vision.studies import boundaries, capacity, features, lottery, mismatch, variants
from fewer.systems.vision.studies.light import lightest, rivals, shrink
from fewer.systems.vision.studies.light.suite import SUITE
from fewer.systems.vision.studies.measure import ATTACKS
from fewer.systems.vision.studies.pieces import engine_of, run_piece
from fewer.systems.vision.studies.place import QUICK_LIMIT, Place, data_in_words, images, where
from fewer.systems.vision.studies.recipe import Recipe, label

__all__ = ["Choices", "catalogue", "plan", "recipes", "settings"]

_RECIPES: dict[str, Callable[[str], dict[str, Recipe]]] = {
    "vision/table2": lambda scale: capacity.unpruned("pgd", scale),
    "vision/table3": lambda scale: capacity.unpruned("fgsm", scale),
    "vision/fig2-3": lambda scale: {**capacity.unpruned("fgsm", scale), **capacity.unpruned("pgd", scale)},
    "vision/fig4": lambda scale: boundaries.boundary_pieces(scale),
    "vision/fig5-8": lambda scale: features.feature_pieces(scale),
    "vision/deeper": lambda scale: variants.variant_pieces(scale),
    "vision/mismatch": lambda scale: {**mismatch.standard_pieces(scale), **mismatch.mismatch_pieces(scale)},
    "vision/lightest": lambda scale: {**lightest.light_pieces(scale), "features-base": lightest.features_base(scale)},
    "vision/shrink": lambda scale: {"shrink-base": shrink.shrink_base(scale)},
}


@dataclass(frozen=True)
class Choices:
    """What may be changed."""

    seeds: tuple[int, ...] = choice((), "such as 0,1,2; empty: the piece's own")
    together: int | None = choice(None, "replicas in one cohort; 0: all; none: the piece's own")


def recipes(order: Order) -> dict[str, Recipe]:
    """All that a study trains from first weights, with the order's choices."""
    chosen = from_text(Choices, order.words)
    found = _RECIPES[order.study](order.scale) if order.study in _RECIPES else {}
    return {
        name: dataclasses.replace(
            recipe,
            seeds=chosen.seeds or recipe.seeds,
            together=recipe.together if chosen.together is None else chosen.together,
        )
        for name, recipe in found.items()
    }


def catalogue(order: Order) -> Pieces:
    """The pieces of a study: a training each, and what is made of them."""
    place = functools.cache(lambda: _place(order))
    every = {name: _piece(order, name, recipe, place) for name, recipe in recipes(order).items()}
    if order.study == "vision/fig9-12":
        every = {name: _playing(game, place) for name, game in lottery.games(order.scale).items()}
    if order.study == "vision/lightest":
        every |= _light(order, place)
    if order.study == "vision/shrink":
        cost = "half of the features each round, by four measures"
        for seed in recipes(order)["shrink-base"].seeds:
            one = functools.partial(lambda each: shrink.train_shrinking(order.scale, place(), (each,)), seed)
            every[f"shrink-{seed}"] = Piece(cost, one, late=True)
    return Pieces(every, Choices)


def _place(order: Order) -> Place:
    images(order)  # a study can be put together without them, a piece cannot be trained
    return where(order)


def _piece(order: Order, name: str, recipe: Recipe, place: Callable[[], Place]) -> Piece:
    """Trained, and where a study asks for more of the finished network, measured."""
    if name.startswith("mismatch-"):
        return Piece(_cost(recipe), lambda: mismatch.judge_piece(recipe, place()), late=True)
    if order.study == "vision/fig5-8":
        return Piece(_cost(recipe), lambda: features.measure_piece(recipe, order.scale, place()))
    if order.study == "vision/fig4":
        return Piece(_cost(recipe), lambda: boundaries.measure_piece(recipe, order.scale, place()))
    return Piece(_cost(recipe), lambda: run_piece(recipe, place()))


def _playing(game: lottery.Game, place: Callable[[], Place]) -> Piece:
    rounds, training = game.settings.rounds + 1, game.training
    cost = (
        f"{game.network}, {game.lines} lines in a cohort: {rounds * training.steps} cohort steps of batch "
        f"{training.batch} in {rounds} rounds, {lottery.KINDS[game.kind] or 'not hardened'}"
    )
    return Piece(cost, lambda: lottery.train_tickets(game, place()))


def _light(order: Order, place: Callable[[], Place]) -> dict[str, Piece]:
    scale, chosen = order.scale, recipes(order)
    found = {}
    for name in lightest.small_pieces(scale):
        cost = f"the whole attack suite on {len(chosen[name].replicas)} networks of {chosen[name].network}"
        found[f"suite-{name}"] = Piece(
            cost, functools.partial(lambda each: lightest.audit(scale, each, place()), chosen[name]), late=True
        )
    seeds = from_text(Choices, order.words).seeds
    scores = "scores, then weights, of the unpruned cured-pgd-cnn3, three densities"
    found["hydra"] = Piece(scores, lambda: lightest.train_scores(scale, place(), seeds), late=True)
    usefulness = "half of the features of cured-pgd-cnn3 each round, by four measures"
    found["features"] = Piece(usefulness, lambda: lightest.train_features(scale, place()), late=True)
    return found


def _cost(recipe: Recipe) -> str:
    count, size = len(recipe.replicas), recipe.together or len(recipe.replicas)
    return (
        f"{recipe.network}, {count} replicas, {size} in a cohort: {-(-count // size) * recipe.steps} cohort steps "
        f"of batch {recipe.batch}, {recipe.hardening or 'not hardened'}"
    )


def settings(order: Order) -> dict[str, Any]:
    """What the order stands for: images, attacks, and every training with its seeds and densities."""
    if order.study == "vision/table1":
        return {"image": list(variants.SHAPE), "classes": variants.CLASSES}
    found: dict[str, Any] = {
        "data": data_in_words(order), "attacks": ATTACKS,
        "test images": QUICK_LIMIT if order.scale == "quick" else "all",
        "trainings": {name: _described(recipe) for name, recipe in recipes(order).items()},
    }  # fmt: skip
    more: dict[str, Callable[[], dict[str, Any]]] = {
        "vision/fig9-12": lambda: {"trainings": {n: _game(game) for n, game in lottery.games(order.scale).items()}},
        "vision/lightest": lambda: {"suite": SUITE[order.scale], "rivals": _rivals(order.scale)},
        "vision/shrink": lambda: {"round": list(shrink.SHORT[order.scale]), "tuning": rivals.TUNING},
        "vision/fig5-8": lambda: {"images": features.SAMPLES[order.scale]},
        "vision/fig4": lambda: {"images": boundaries.IMAGES[order.scale]},
    }
    return found | (more[order.study]() if order.study in more else {})


def _rivals(scale: str) -> dict[str, Any]:
    densities, scores, features, samples = lightest.SHORT[scale]
    return {"densities": list(densities), "score steps": scores, "feature steps": features, "images": samples}


def _described(recipe: Recipe) -> dict[str, Any]:
    prunings = [label(pruning) for pruning in recipe.prunings]
    optimizer = dataclasses.asdict(recipe.optimizer) | {"betas": list(recipe.optimizer.betas)}
    return {**recipe.config(), "optimizer": optimizer, "seeds": list(recipe.seeds), "prunings": prunings}


def _game(game: lottery.Game) -> dict[str, Any]:
    optimizer = dataclasses.asdict(game.training.optimizer) | {"betas": list(game.training.optimizer.betas)}
    played = dataclasses.asdict(game.settings) | {"starts": list(game.settings.starts)}
    return {
        "network": game.network, "hardening": lottery.KINDS[game.kind], "steps": game.training.steps,
        "batch": game.training.batch, "optimizer": optimizer, "lottery": played, "seeds": list(game.seeds),
    }  # fmt: skip


def plan(order: Order) -> list[Planned]:
    """Every training of the study."""
    place = functools.cache(lambda: _place(order))
    found = [_planned(recipe, place) for recipe in recipes(order).values()]
    if order.study == "vision/fig9-12":
        found = [
            Planned(name, game.training.steps, functools.partial(_first_round, game, place), game.settings.rounds + 1)
            for name, game in lottery.games(order.scale).items()
        ]
    if order.study == "vision/shrink":
        base, (steps, _) = shrink.shrink_base(order.scale), shrink.SHORT[order.scale]
        found.append(_tuned("shrink", base, steps, times=16 * len(base.seeds), place=place))
    if order.study == "vision/lightest":
        densities, learning, tuning, _ = lightest.SHORT[order.scale]
        base = lightest.features_base(order.scale)
        found.append(_tuned("hydra", base, learning, times=2 * len(densities), place=place))
        found.append(_tuned("features", base, tuning, times=16, place=place))
    return found


def _planned(recipe: Recipe, place: Callable[[], Place]) -> Planned:
    alone = place().device == "cpu" and recipe.together == 0
    size = 1 if alone else recipe.together or len(recipe.replicas)
    times = -(-len(recipe.replicas) // size)
    # the standard network that one change needs is not there before the study runs
    asked = dataclasses.replace(recipe, change="" if recipe.change == "inject" else recipe.change)
    return Planned(recipe.name, recipe.steps, lambda: engine_of(asked, place()), times)


def _first_round(game: lottery.Game, place: Callable[[], Place]) -> Engine:
    return game.engine(place())


def _tuned(name: str, base: Recipe, steps: int, *, times: int, place: Callable[[], Place]) -> Planned:
    """Trainings on from a hardened network, which has at most the weights of its base."""

    def engine() -> Engine:
        task = harden(place().images_of(base), rivals.TUNING)
        return Cohort(task, rivals.tuning_of(base, steps, place()), [0])

    return Planned(name, steps, engine, times)
