"""The demonstration of this system: a clone of the embedded expert, dense and with 95 % removed."""

from __future__ import annotations

from fewer.core.recipe import affordable
from fewer.run.job import Job
from fewer.run.options import job_of

__all__ = ["jobs"]

_STEPS = 2500
_CLONE = {"settings": ["algorithm=plain-bc", "transitions=20000", "episodes=10"], "steps": _STEPS, "seeds": "0-2"}


def jobs() -> dict[str, Job]:
    """From a few of the expert's steps; as many updates on kept weights as cost what the dense ones do."""
    pruned = {"steps": affordable(_STEPS, 0.95), "prune": "auto", "sparsity": 0.95}
    return {"hopper-dense": job_of("control", _CLONE), "hopper-95": job_of("control", {**_CLONE, **pruned})}
