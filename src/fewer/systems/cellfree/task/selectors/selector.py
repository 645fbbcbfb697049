"""One interface for every way to choose access points, and the ways that learn nothing or only count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Bools, Floats, Integers
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.statistics import metrics
from fewer.systems.cellfree.task.survey import Survey, World
from fewer.systems.cellfree.task.world.deployment import Deployment

__all__ = ["Frequency", "Nearest", "Selection", "Selector", "at_most"]


@dataclass(frozen=True)
class Selection:
    """Who serves whom: one row per phone, the master first."""

    candidates: Integers  # (n, c + 1)
    scores: Floats  # (n, c + 1) probabilities of serving
    chosen: Bools  # (n, c + 1)

    def __len__(self) -> int:
        return len(self.candidates)

    def access_points(self, phone: int = 0) -> Integers:
        """The access points that serve one phone, master first, then by probability."""
        order = np.argsort(-self.scores[phone, 1:], kind="stable") + 1
        order = np.concatenate([[0], order])
        return np.asarray(self.candidates[phone, order][self.chosen[phone, order]])


class Selector(ABC):
    """`Selector().fit(deployment).select(master, rsrp_db)`.

    Fitting takes a deployment, or a world that also fixes candidates and measurements. Phones come one or many at
    once; NaN means "not measured". Subclasses say how to fit and how to score, and nothing else.
    """

    world: World

    def fit(self, where: Deployment | World, *, settings: Settings | None = None, survey: Survey | None = None) -> Self:
        """Learn from labelled phones: the given ones, or the training phones of the deployment."""
        if isinstance(where, World):
            self.world = where
        else:
            chosen = settings or Settings()
            self.world = World.make(chosen, where)
        if survey is None:
            survey = self.world.survey(self.world.settings.train_phones, part="train")
        self.learn(survey)
        return self

    @abstractmethod
    def learn(self, survey: Survey) -> None:
        """Fit to labelled phones of `self.world`."""

    @abstractmethod
    def scores(self, master: Integers, rsrp_db: Floats, reported: Bools) -> Floats:
        """(n, c + 1) probabilities that each candidate serves; arguments are checked."""

    def select(
        self,
        master: int | Sequence[int] | Integers,
        rsrp_db: Sequence[float] | Floats,
        *,
        probability: float = 0.5,
        phones_per_access_point: int | None = None,
    ) -> Selection:
        """Who serves each phone: candidates at least that probable, optionally so many phones per access point."""
        masters, rsrp, reported = self.checked(master, rsrp_db)
        scores = self.scores(masters, rsrp, reported)
        chosen = scores >= probability
        chosen[:, 0] = True
        candidates = self.world.clusters.candidates[masters]
        if phones_per_access_point is not None:
            chosen = at_most(candidates, scores, chosen, phones_per_access_point)
        return Selection(candidates, scores, chosen)

    def checked(
        self, master: int | Sequence[int] | Integers, rsrp_db: Sequence[float] | Floats
    ) -> tuple[Integers, Floats, Bools]:
        """Masters, reports and which of them exist, or a refusal."""
        if not hasattr(self, "world"):
            raise UserError(f"a {type(self).__name__} that was not fitted", "a fitted one", "call fit(deployment)")
        masters = self.world.clusters.checked_master(np.asarray(master))
        rsrp = np.asarray(rsrp_db, dtype=np.float64)
        rsrp = rsrp[None] if rsrp.ndim == 1 else rsrp
        measured = self.world.clusters.measured.shape[1]
        if rsrp.shape != (len(masters), measured):
            raise UserError(f"reports of shape {rsrp.shape}", f"({len(masters)}, {measured}) for these masters")
        reported = ~np.isnan(rsrp)
        if not reported[:, 0].all() or np.isinf(rsrp).any():
            raise UserError("a phone whose master's signal is NaN or infinite", "a measured master, first in its row")
        return masters, np.where(reported, rsrp, 0.0), reported

    def metrics(self, survey: Survey) -> dict[str, float]:
        """How well it does on labelled phones."""
        scores = self.scores(survey.master, survey.rsrp_db, survey.reported)
        return metrics(scores, survey, self.world.settings.threshold_db)


def at_most(candidates: Integers, scores: Floats, chosen: Bools, limit: int) -> Bools:
    """The choice with at most `limit` phones per access point: the most probable stay, a phone's master always does."""
    if limit < 1:
        raise UserError(f"{limit} phones per access point", "at least 1")
    phone, slot = np.nonzero(chosen)
    access_point = candidates[phone, slot]
    rank_by = np.where(slot == 0, np.inf, scores[phone, slot])
    order = np.lexsort((-rank_by, access_point))
    starts = np.searchsorted(access_point[order], access_point[order])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - starts
    kept = np.zeros_like(chosen)
    kept[phone, slot] = (rank < limit) | (slot == 0)
    return kept


class Nearest(Selector):
    """The k candidates closest to the master, whatever is measured."""

    def __init__(self, k: int = 3) -> None:
        self.k = k

    def learn(self, survey: Survey) -> None:
        """Nothing to learn."""

    def scores(self, master: Integers, rsrp_db: Floats, reported: Bools) -> Floats:
        slots = np.arange(self.world.clusters.candidates.shape[1])
        return np.tile(1 / (1 + np.exp(slots - self.k - 0.5)), (len(master), 1))


class Frequency(Selector):
    """How often each candidate served the master's phones: reports are ignored."""

    def learn(self, survey: Survey) -> None:
        """Count, with one imagined phone per master that behaves like the average one."""
        serves = survey.serves(self.world.settings.threshold_db)
        prior = serves.mean(axis=0)
        count = np.bincount(survey.master, minlength=len(self.world.clusters)) + 1.0
        total = np.stack([np.bincount(survey.master, column, len(count)) for column in serves.T], axis=1)
        self.table = (total + prior) / count[:, None]

    def scores(self, master: Integers, rsrp_db: Floats, reported: Bools) -> Floats:
        return self.table[master]  # type: ignore[no-any-return]
