"""What may remove the weights: the paper's two criteria, what it tried of them, and what else there is."""

from __future__ import annotations

from collections.abc import Callable

from fewer.core.errors import UserError
from fewer.core.settings import nearest
from fewer.pruning.pruning import Pruning

__all__ = ["RECIPES", "Recipe", "recipe_of"]

Recipe = tuple[str, float]  # its name, and the share of the weights that it removes

RECIPES: dict[str, Callable[[float], Pruning | None]] = {
    "dense": lambda sparsity: None,
    "snip": lambda sparsity: Pruning("snip", sparsity),
    "grasp": lambda sparsity: Pruning("grasp", sparsity),
    "random": lambda sparsity: Pruning("random", sparsity, "layer"),
    "erk": lambda sparsity: Pruning("random", sparsity, "erk"),
    "magnitude": lambda sparsity: Pruning("magnitude", sparsity),
    "synflow": lambda sparsity: Pruning("synflow", sparsity),
    "set": lambda sparsity: Pruning("random", sparsity, "erk", when="set", end=0.75),
    "snip-batches": lambda sparsity: Pruning("snip", sparsity, batches=50),
    "snip-rounds": lambda sparsity: Pruning("snip", sparsity, batches=10, iterations=20),
    "grasp-batches": lambda sparsity: Pruning("grasp", sparsity, batches=50),
    "grasp-rounds": lambda sparsity: Pruning("grasp", sparsity, batches=10, iterations=20),
    "snip-erk": lambda sparsity: Pruning("snip", sparsity, "erk", batches=50),
    "rigl": lambda sparsity: Pruning("random", sparsity, "erk", when="rigl", end=0.75),
    "snip-rigl": lambda sparsity: Pruning("snip", sparsity, batches=50, when="rigl", end=0.75),
    "gradual": lambda sparsity: Pruning("magnitude", sparsity, when="gradual", begin=0.05, end=0.5),
}


def recipe_of(word: str) -> Recipe:
    """`snip:0.95`, or `dense`."""
    name, _, sparsity = word.partition(":")
    if name not in RECIPES:
        raise UserError(f"recipe {name!r}", "a known one", nearest(name, list(RECIPES)))
    try:
        return name, 0.0 if name == "dense" else float(sparsity)
    except ValueError:
        raise UserError(f"recipe {word!r}", "a sparsity after its name", f"such as {name}:0.95") from None
