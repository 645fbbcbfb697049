"""Light hardened networks where no front end helps: Fashion-MNIST, or digits without the steep sigmoid.

The small network of the robustness literature (311,600 weights), hardened by PGD-7 with a ramp and pruned gradually
meanwhile. Pixels are grey: nothing makes them black and white first, which is most of what the lightest digit networks
live by. `--data` names the images; `--set budget=0.1` suits clothes, 0.3 is usual for digits.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewer.core.settings import from_text
from fewer.studies.order import Order
from fewer.studies.pieces import Pieces, choice
from fewer.studies.study import Result
from fewer.systems.vision.studies.light import photo_recipes
from fewer.systems.vision.studies.light.photo_recipes import Recipe
from fewer.systems.vision.studies.light.photographs import COLUMNS, pieces, suite, table

__all__ = ["catalogue", "honest_light", "settings"]

DENSITIES = {"dense": 1.0, "kept-10": 0.1, "kept-3": 0.03, "kept-1": 0.01}


@dataclass(frozen=True)
class Choices(photo_recipes.Choices):
    """What may be changed."""

    budget: float = choice(0.1, "of hardening and audit, from 0 (black) to 1 (white)")


def _recipes(order: Order) -> dict[str, Recipe]:
    chosen, quick = from_text(Choices, order.words), order.scale == "quick"
    steps = 2 if quick else 7
    hardening = f"pgd:{chosen.budget:g},steps={steps},ramp=0.3"
    found = {}
    for name, density in DENSITIES.items():
        recipe = Recipe(
            name, "cnn0" if quick else "small-cnn", hardening, chosen.epochs or (1 if quick else 24),
            chosen.batch or (32 if quick else 256), lr=1e-3, sparsity=1 - density, smooth=0.0, augment="",
            average=0.9 if quick else 0.998, optimizer="adam", budget=chosen.budget,
        )  # fmt: skip
        found[name] = dataclasses.replace(recipe, sparsity=min(recipe.sparsity, 0.9)) if quick else recipe
    return found


def settings(order: Order) -> dict[str, Any]:
    """What the order stands for."""
    chosen = from_text(Choices, order.words)
    return {
        "images": _images(order), "budget": chosen.budget, "images under attack": chosen.images or "all",
        "attacks": [each.title for each in suite(order.scale, chosen.budget)],
        "trainings": {name: dataclasses.asdict(recipe) for name, recipe in _recipes(order).items()},
    }  # fmt: skip


def catalogue(order: Order) -> Pieces:
    """A piece for each density, and one for each audit."""
    return Pieces(pieces(_recipes(order), order, from_text(Choices, order.words)), Choices)


def _images(order: Order) -> str:
    """By the name of the file: what `fewer data vision` wrote."""
    name = Path(order.data).name
    known = {"fashion.npz": "Fashion-MNIST, a split of our own", "mnist": "MNIST"}
    return known.get(name, "own images") if order.data else "embedded digits"


def honest_light(order: Order) -> Result:
    """The table of what is finished; at scale quick all is made first."""
    if order.scale == "quick":
        for piece in catalogue(order).every.values():
            piece.make()
    rows, details = table(_recipes(order), order)
    budget = from_text(Choices, order.words).budget
    title = f"Light hardened networks without a contrast front end: {_images(order)}, eps {budget:g}"
    notes = ["one seed; PGD-7 with a ramp, gradual LAMP; worst case per image over what was tried"]
    return Result(title, COLUMNS, rows, notes, details={"trainings": details})
