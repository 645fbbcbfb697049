"""The demonstration of this system: a clone of the embedded expert, dense and pruned."""

from __future__ import annotations

from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job

__all__ = ["jobs"]


def jobs() -> dict[str, Job]:
    """A clone of the embedded expert, from a few of its steps."""
    settings = ("environment=hopper", "algorithm=plain-bc", "transitions=20000", "episodes=5")
    training = Training(steps=2000, batch=256, optimizer=Optimizer(lr=3e-3, decay_from=0.5))
    return {
        "control-dense": Job("control", settings, training),
        "control-snip95": Job("control", settings, training, prune=Pruning("snip", 0.95)),
    }
