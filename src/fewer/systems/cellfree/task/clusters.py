"""Which access points are candidates for the phones of a master, and which of them are measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Floats, Integers
from fewer.systems.cellfree.task.world.deployment import Deployment

__all__ = ["Clusters", "closest", "learned", "strongest"]


@dataclass(frozen=True)
class Clusters:
    """Per master: itself first, then its candidates, nearest first; and the access points its phones measure."""

    candidates: Integers  # (L, c + 1)
    measured: Integers  # (L, n), the master first

    def __len__(self) -> int:
        return len(self.candidates)

    def checked_master(self, master: Integers) -> Integers:
        """The masters as integers of this network; an unknown one is refused."""
        master = np.atleast_1d(np.asarray(master))
        if not np.issubdtype(master.dtype, np.integer):
            raise UserError(f"masters of type {master.dtype}", "whole numbers of access points")
        wrong = (master < 0) | (master >= len(self))
        if wrong.any():
            given = int(master[wrong][0])
            raise UserError(f"master {given}", f"an access point from 0 to {len(self) - 1}", "no such access point")
        return master.astype(np.int64)


def _checked(deployment: Deployment, candidates: int, measured: int) -> None:
    if candidates >= len(deployment):
        raise UserError(
            f"{candidates} candidates of {len(deployment)} access points", "fewer candidates than access points",
            f"set candidates to at most {len(deployment) - 1}",
        )  # fmt: skip
    if not 1 <= measured <= candidates + 1:
        raise UserError(f"{measured} measured access points", f"1 to {candidates + 1}: the master and candidates")


def closest(deployment: Deployment, candidates: int, measured: int) -> Clusters:
    """Candidates by distance to the master, the paper's rule; the closest are measured."""
    _checked(deployment, candidates, measured)
    near = deployment.near(deployment.access_points, candidates + 1)
    return Clusters(near, near[:, :measured].copy())


def strongest(deployment: Deployment, candidates: int, measured: int) -> Clusters:
    """Candidates by the signal that access points hear of one another, the paper's alternative."""
    _checked(deployment, candidates, measured)
    pool = deployment.near(deployment.access_points, min(len(deployment), max(128, 4 * candidates)))
    heard = deployment.gain_to(deployment.access_points, pool)
    heard[:, 0] = np.inf  # the master stays first
    order = np.argsort(-heard, axis=1, kind="stable")[:, : candidates + 1]
    chosen = np.take_along_axis(pool, order, axis=1)
    return Clusters(chosen, chosen[:, :measured].copy())


def learned(start: Clusters, master: Integers, near: Integers, gap_db: Floats, *, threshold_db: float) -> Clusters:
    """Candidates by how often they served a master's phones; the starting lists fill what is left open.

    `near` and `gap_db` (phones, audible) are the access points each phone heard and how far below its master.
    What is measured does not change: a phone measures before anything is known.
    """
    count, slots = start.candidates.shape
    phone, column = np.nonzero((gap_db < threshold_db) & (near != master[:, None]))
    pairs, votes = np.unique(master[phone] * count + near[phone, column], return_counts=True)
    # half a vote and less for the starting lists: they break ties and fill up, nearest first
    prior = 0.5 * (1.0 - np.arange(1, slots) / slots)
    own = (np.arange(count)[:, None] * count + start.candidates[:, 1:]).ravel()
    every, inverse = np.unique(np.concatenate([pairs, own]), return_inverse=True)
    weight = np.bincount(inverse, weights=np.concatenate([votes, np.tile(prior, count)]))
    order = np.lexsort((-weight, every // count))
    owner = every[order] // count
    first = np.searchsorted(owner, np.arange(count))
    chosen = every[order][first[:, None] + np.arange(slots - 1)] % count
    return Clusters(np.concatenate([np.arange(count)[:, None], chosen], axis=1), start.measured)
