"""The demonstration of this system: generated weather over a small map."""

from __future__ import annotations

from fewer.run.job import Job
from fewer.run.options import job_of

__all__ = ["jobs"]

_SMALL = {
    "settings": ["size=36", "width=8", "train_windows=200", "validation_windows=8", "test_windows=24"],
    "steps": 120,
    "batch": 8,
    "optimizer": "adamw,lr=2e-3,weight_decay=2e-2,clip_value=2.0,warmup=30,decay_from=0.3",
    "seeds": "0-2",
}


def jobs() -> dict[str, Job]:
    """Weights go in few steps, since there are few steps."""
    pruned = {"prune": "auto,samples=8,every=10", "sparsity": 0.8}
    return {"rain-dense": job_of("nowcast", _SMALL), "rain-80": job_of("nowcast", {**_SMALL, **pruned})}
