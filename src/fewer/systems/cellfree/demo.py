"""The demonstration of this system: a selector with a tenth of its weights."""

from __future__ import annotations

from fewer.core.engines.base import Training
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job

__all__ = ["jobs"]


def jobs() -> dict[str, Job]:
    """A selector whole, and with a tenth of its weights."""
    training = Training(steps=1500, batch=100)
    return {
        "cellfree-dense": Job("cellfree", (), training),
        "cellfree90": Job("cellfree", (), training, prune=Pruning("magnitude", 0.9, when="gradual")),
    }
