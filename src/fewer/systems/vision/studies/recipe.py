"""A recipe: one network, one way to train it, several densities and seeds."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from fewer.core.engines.optimizer import Optimizer
from fewer.pruning.pruning import Pruning
from fewer.run.options import job_of
from fewer.systems.vision.presets import PRESETS

__all__ = ["BUDGET", "DENSE", "Recipe", "cured", "gradual", "label", "printed"]

BUDGET = 0.3  # pixels, the paper's
DENSE = Pruning("magnitude", 0.0, "global", "gradual")


@dataclass(frozen=True)
class Recipe:
    """What one call trains. Replicas are every pruning with every seed."""

    name: str
    network: str
    hardening: str  # as on the command line; empty: normal training
    steps: int
    batch: int = 256
    optimizer: Optimizer = field(default_factory=Optimizer)
    prunings: tuple[Pruning, ...] = (DENSE,)
    seeds: tuple[int, ...] = (0, 1, 2)
    together: int = 0  # replicas in one cohort on a GPU; 0: all. Wide convolutions are faster alone.
    points: int = 0  # measurements of the first replica on the way, for curves
    weights: bool = True  # saved at the end
    validation: float = 0.0  # share of the training images held out
    contrast: float = 0.0  # steepness of the sigmoid that pixels pass first
    classes: str = ""  # only these; empty: all
    change: str = ""  # of the training itself, one of `changes.CHANGES`

    @property
    def replicas(self) -> list[tuple[Pruning, int]]:
        return [(pruning, seed) for pruning in self.prunings for seed in self.seeds]

    def config(self) -> dict[str, Any]:
        """What decides the numbers; not which prunings and seeds, so that more may be added later."""
        apart = ("prunings", "seeds", "together", "weights", "points")
        return {key: value for key, value in dataclasses.asdict(self).items() if key not in apart}


def cured(name: str, network: str, *, steps: int = 9400, hardening: str = "pgd:0.3", **changes: Any) -> Recipe:
    """The recipe that works: attacked images only, the budget ramped, Adam with a warm-up, cosine decay at the end."""
    optimizer = Optimizer(lr=1e-3, warmup=min(200, steps // 10), decay_from=0.5)
    return dataclasses.replace(Recipe(name, network, hardening, steps, optimizer=optimizer), **changes)


def printed(preset: str, **changes: Any) -> Recipe:
    """The recipe that the paper prints, from the words of a preset."""
    job = job_of("vision", PRESETS[preset])
    training, network = job.training, dict(pair.split("=") for pair in job.settings)["network"]
    recipe = Recipe(
        preset, network, job.harden or "", training.steps, training.batch, training.optimizer, weights=False
    )
    return dataclasses.replace(recipe, **changes)


def gradual(density: float, steps: int) -> Pruning:
    """Global magnitude, cubic between 20 % and 60 % of the training."""
    return dataclasses.replace(DENSE, sparsity=1 - density, every=max(1, steps // 50))


def label(pruning: Pruning) -> str:
    """A file name for a pruning: `dense`, `magnitude-3`."""
    return "dense" if pruning.sparsity == 0 else f"{pruning.method}-{100 * (1 - pruning.sparsity):.4g}"
