"""A recipe: how a task is trained by default, dense and pruned, written down once by the task itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PRUNE", "Recipe", "affordable"]

PRUNE = "lamp,when=gradual"  # where nobody has tried what is better
_NOTICED = 0.9  # sparsity from which a criterion that is known to be worse is worth a line

# What an update costs on kept weights alone, in updates of the dense network: a part for every call and a part for
# every kept weight. Measured on one AVX-512 core, networks of 400 and 300 units at batches of 100.
_CALLS = 0.07
_WEIGHTS = 1.2


@dataclass(frozen=True)
class Recipe:
    """Chosen on the task's development data.

    Fields of `Training` are given as a mapping, as a task recommends them; what is left out is the default.
    """

    training: Mapping[str, Any] = field(default_factory=dict)  # dense, or pruned as somebody else says
    prune: str = PRUNE  # what `--prune auto` stands for: criterion, when and scope, in the words of `--prune`
    pruned: Mapping[str, Any] = field(default_factory=dict)  # fields of Training that differ under it
    sparse: bool = False  # its time goes into layers that the sparse engine trains by their kept weights alone
    worse: Mapping[str, str] = field(default_factory=dict)  # criteria at the start that fall behind, and how far

    def recommended(self, *, auto: bool) -> dict[str, Any]:
        """Fields of `Training`, as `--prune auto` or anything else takes them."""
        return {**self.training, **(self.pruned if auto else {})}

    def warning(self, method: str, when: str, sparsity: float) -> str | None:
        """One line where the pruning that is asked for is known to be worse than this recipe."""
        if when != "start" or sparsity < _NOTICED or method not in self.worse:
            return None
        return f"--prune {method} alone is known to be worse here: {self.worse[method]}; --prune auto is the recipe"


def affordable(steps: int, sparsity: float) -> int:
    """How many updates on kept weights cost what `steps` dense ones do; counted, never timed, so that a run is the same
    wherever and whenever it goes on.

    >>> affordable(1000, 0.95)
    7700
    >>> affordable(1000, 0.0)
    1000
    """
    cost = min(1.0, _CALLS + _WEIGHTS * (1 - sparsity))
    return max(steps, 100 * round(steps / cost / 100))
