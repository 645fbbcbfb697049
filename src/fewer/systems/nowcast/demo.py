"""The demonstration of this system: generated weather over a small map."""

from __future__ import annotations

from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job

__all__ = ["jobs"]


def jobs() -> dict[str, Job]:
    """Generated weather over a small map; a quota, because magnitudes alone would empty the widest layers."""
    settings = ("size=36", "width=8", "train_windows=200", "validation_windows=8", "test_windows=24")
    rule = Optimizer("adamw", lr=2e-3, weight_decay=2e-2, clip_value=2.0, warmup=30, decay_from=0.3)
    prune = Pruning("magnitude", 0.8, when="gradual", layer_quota=0.02, samples=8)
    training = Training(steps=150, batch=8, optimizer=rule)
    return {
        "nowcast-dense": Job("nowcast", settings, training),
        "nowcast80": Job("nowcast", settings, training, prune=prune),
    }
