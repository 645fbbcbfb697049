"""The demonstration of this system: digits dense, with 95 % removed, and hardened while pruned."""

from __future__ import annotations

from fewer.run.job import Job
from fewer.run.options import job_of

__all__ = ["jobs"]

_SHORT = {"settings": ["network=mlp"], "steps": 800}


def jobs() -> dict[str, Job]:
    """The recipe trains pruned networks longer; the hardened one keeps its tenth under attack."""
    return {
        "digits-dense": job_of("vision", {**_SHORT, "seeds": "0-2"}),
        "digits-95": job_of("vision", {**_SHORT, "steps": 1800, "prune": "auto", "sparsity": 0.95, "seeds": "0-2"}),
        "digits-hardened-90": job_of(
            "vision", {**_SHORT, "prune": "auto", "sparsity": 0.9, "harden": "pgd:0.1,steps=5"}
        ),
    }
