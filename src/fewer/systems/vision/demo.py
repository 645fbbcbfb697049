"""The demonstration of this system: digits dense, with 95 % removed before training, and hardened while pruned."""

from __future__ import annotations

from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job

__all__ = ["jobs"]


def jobs() -> dict[str, Job]:
    """Digits dense, with 95 % removed before training, and hardened while pruned."""
    network, short = ("network=mlp",), Training(steps=600, batch=128, optimizer=Optimizer(lr=2e-3, decay_from=0.5))
    gradual = Pruning("magnitude", 0.9, scope="global", when="gradual")
    return {
        "digits-dense": Job("vision", network, short),
        "digits-snip95": Job("vision", network, short, prune=Pruning("snip", 0.95)),
        "digits-hardened90": Job("vision", network, short, harden="pgd:0.1,steps=5", prune=gradual),
    }
