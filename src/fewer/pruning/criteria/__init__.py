"""Criteria: a score for every weight, larger is kept.

A file here with one function and a line in `CRITERIA` make one; help, completion, grids and the contract suite then
know it. Functions are imported when they are called: listing criteria needs no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewer.core.system import imported

if TYPE_CHECKING:
    from torch import nn

    from fewer.core.task import Noise, Task
    from fewer.pruning.criteria.scoring import Scores

__all__ = ["CRITERIA", "METHODS", "Criterion"]


@dataclass(frozen=True)
class Criterion:
    """Where the function is, and what it takes."""

    place: str  # "module:function", task, modules, batches, noise -> scores
    batches: int = 1  # the fewest it scores on
    iterations: int = 1  # rounds of scoring and pruning, where the user names no number
    blind: bool = False  # scores without data: a sample only tells the shapes

    def __call__(
        self, task: Task[Any], modules: Mapping[str, nn.Module], batches: Sequence[Any], noise: Noise
    ) -> Scores:
        scores: Scores = imported(self.place)(task, modules, batches, noise)
        return scores


CRITERIA = {
    "magnitude": Criterion("fewer.pruning.criteria.magnitude:magnitude", blind=True),
    "lamp": Criterion("fewer.pruning.criteria.lamp:lamp", blind=True),
    "snip": Criterion("fewer.pruning.criteria.snip:snip"),
    "grasp": Criterion("fewer.pruning.criteria.grasp:grasp", batches=2),
    "synflow": Criterion("fewer.pruning.criteria.synflow:synflow", iterations=100, blind=True),
    "random": Criterion("fewer.pruning.criteria.random:random", blind=True),
}
METHODS = ("auto", *CRITERIA, "lottery", "dense")  # what `--prune` takes
