"""The demonstration of this system: a selector, dense and with a tenth of its weights."""

from __future__ import annotations

from fewer.run.job import Job
from fewer.run.options import job_of

__all__ = ["jobs"]


def jobs() -> dict[str, Job]:
    """A selector with a tenth of its weights, trained twice as long."""
    return {
        "phones-dense": job_of("cellfree", {"steps": 1500, "seeds": "0-2"}),
        "phones-90": job_of("cellfree", {"steps": 3000, "prune": "auto", "sparsity": 0.9, "seeds": "0-2"}),
    }
