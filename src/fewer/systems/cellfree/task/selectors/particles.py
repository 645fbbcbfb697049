"""A posterior over places: labelled phones of a master, weighted by how well their signals fit the reports."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Bools, Floats, Integers, generator
from fewer.systems.cellfree.task.selectors.reporting import Reporting
from fewer.systems.cellfree.task.selectors.selector import Selector
from fewer.systems.cellfree.task.survey import Survey, World, before

__all__ = ["Bayes", "Fingerprint", "Particles", "by_master", "true_particles"]

_PAIRS = 4_000_000  # phone-particle pairs weighted at once


def by_master(master: Integers, count: int) -> tuple[Integers, Integers]:
    """Rows sorted by master, and where each master's rows begin (count + 1)."""
    order = np.argsort(master, kind="stable")
    return order, np.searchsorted(master[order], np.arange(count + 1))


@dataclass(frozen=True)
class Particles:
    """Places with what is heard there, sorted by master."""

    start: Integers  # (L + 1,)
    signal_db: Floats  # (places, measured)
    value: Floats  # (places, values): what to average, such as 1 for every candidate that serves
    reported: Bools | None = None  # (places, measured); None: all
    before_db: Floats | None = None  # (places, measured): signals where the phone came from, for reports that are old

    @classmethod
    def of(cls, survey: Survey, value: Floats, count: int, before_db: Floats | None = None) -> Particles:
        """Labelled phones as particles."""
        order, start = by_master(survey.master, count)
        reported = None if survey.reported.all() else survey.reported[order]
        before = None if before_db is None else before_db[order].astype(np.float32)
        return cls(start, survey.rsrp_db[order].astype(np.float32), value[order].astype(np.float32), reported, before)

    def mean(
        self, master: Integers, rsrp_db: Floats, reported: Bools, *, by: Reporting, but: Integers | None = None
    ) -> tuple[Floats, Floats]:
        """(n, values) weighted means, and (n,) how many particles the weight is spread over; 0 where there are none.

        `but` (n,) names one particle per phone that does not count: for scores of the phones one has learned from.
        """
        found = np.zeros((len(master), self.value.shape[1]))
        spread = np.zeros(len(master))
        order, first = by_master(master, len(self.start) - 1)
        for m in np.unique(master):
            rows, own = order[first[m] : first[m + 1]], slice(self.start[m], self.start[m + 1])
            size = self.start[m + 1] - self.start[m]
            if size == 0:
                continue
            step = max(1, _PAIRS // int(size))
            for some in (rows[i : i + step] for i in range(0, len(rows), step)):
                weight = self.weights(own, rsrp_db[some], reported[some], by)
                if but is not None:
                    weight[np.arange(len(some)), but[some] - own.start] = 0.0
                total = np.maximum(weight.sum(axis=1, keepdims=True), 1e-30)
                found[some] = (weight @ self.value[own]) / total
                spread[some] = total[:, 0] ** 2 / np.maximum((weight**2).sum(axis=1), 1e-30)
        return found, spread

    def weights(self, own: slice, rsrp_db: Floats, reported: Bools, by: Reporting) -> Floats:
        """(phones, particles), the best one about 1."""
        if by.normal:
            return self._normal_weights(own, rsrp_db, reported, by.error_db)
        if by.stale and self.before_db is None:
            raise UserError(f"reports of which {by.stale:g} are old", "places that know what lay before", "build anew")
        total = np.zeros((len(rsrp_db), own.stop - own.start))
        for column in range(rsrp_db.shape[1]):
            given = rsrp_db[:, column, None]
            earlier = None if self.before_db is None else given - self.before_db[None, own, column]
            found = by.log_likelihood(given - self.signal_db[None, own, column], earlier)
            total += np.where(self._fits(own, reported, column), found, 0.0)
        return np.asarray(np.exp(total - total.max(axis=1, keepdims=True)), dtype=np.float32)

    def _fits(self, own: slice, reported: Bools, column: int) -> Bools:
        both = reported[:, column, None]
        return both if self.reported is None else both & self.reported[None, own, column]

    def _normal_weights(self, own: slice, rsrp_db: Floats, reported: Bools, width_db: float) -> Floats:
        distance = np.zeros((len(rsrp_db), own.stop - own.start), dtype=np.float32)
        for column in range(rsrp_db.shape[1]):
            apart = rsrp_db[:, column, None].astype(np.float32) - self.signal_db[None, own, column]
            distance += np.where(self._fits(own, reported, column), apart * apart, np.float32(0.0))
        distance -= distance.min(axis=1, keepdims=True)
        return np.exp(distance * np.float32(-0.5 / width_db**2))  # type: ignore[no-any-return]


class Fingerprint(Selector):
    """A kernel over the master's training phones; the width is the one that predicts them best, each without itself."""

    def __init__(self, widths_db: tuple[float, ...] = (0.7, 1.0, 1.4, 2.0, 2.8, 4.0)) -> None:
        self.widths_db = widths_db

    def learn(self, survey: Survey) -> None:
        serves = survey.serves(self.world.settings.threshold_db)
        self._prior = serves.mean(axis=0)
        self.particles = Particles.of(survey, serves, len(self.world.clusters))
        order, _ = by_master(survey.master, len(self.world.clusters))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        losses = []
        for width in self.widths_db:
            self.width_db = width
            scores = self._scores(survey.master, survey.rsrp_db, survey.reported, but=place).clip(1e-3, 1 - 1e-3)
            losses.append(-np.where(serves, np.log(scores), np.log(1 - scores))[:, 1:].mean())
        self.width_db = self.widths_db[int(np.argmin(losses))]

    def scores(self, master: Integers, rsrp_db: Floats, reported: Bools) -> Floats:
        return self._scores(master, rsrp_db, reported, but=None)

    def _scores(self, master: Integers, rsrp_db: Floats, reported: Bools, but: Integers | None) -> Floats:
        mean, spread = self.particles.mean(master, rsrp_db, reported, by=Reporting(self.width_db), but=but)
        # as if one average phone more had been seen: few neighbours should not speak with certainty
        share = (spread / (spread + 0.5))[:, None]
        return np.asarray(share * mean + (1 - share) * self._prior)


def true_particles(world: World, places: int, *, part: str = "ceiling") -> tuple[Survey, Floats | None]:
    """Fresh places of the deployment with error-free reports: what knowing the map means.

    Where reports may be old, also (places, measured) signals at a place that the phone may have come from: one angle
    for each place, so that place and angle together are a draw of both.
    """
    phones = world.deployment.phones(places, part=part)
    exact = replace(world, settings=replace(world.settings, error_db=0.0, quantum_db=0.0, missing=0.0, stale=0.0))
    random = generator(world.deployment.seed, f"reports/{part}")
    parts = [exact.survey_at(phones[i : i + 50_000], random) for i in range(0, places, 50_000)]
    fields = ("phones", "master", "rsrp_db", "reported", "gap_db", "serving", "power_share")
    seen = Survey(*(np.concatenate([getattr(p, name) for p in parts]) for name in fields))
    if not world.settings.stale:
        return seen, None
    angle = generator(world.deployment.seed, f"angles/{part}").uniform(0.0, 2 * np.pi, len(phones))
    return seen, world.deployment.gain_to(before(world, phones, angle), world.clusters.measured[seen.master])


class Bayes(Selector):
    """The posterior over the true map: no learner can do better. Needs what no learner has: the ceiling."""

    def __init__(self, places: int = 1_000_000) -> None:
        self.places = places

    def learn(self, survey: Survey) -> None:
        """Look at the map; the labelled phones are not needed."""
        seen, earlier = true_particles(self.world, self.places)
        serves = seen.serves(self.world.settings.threshold_db)
        self.particles = Particles.of(seen, serves, len(self.world.clusters), earlier)

    def scores(self, master: Integers, rsrp_db: Floats, reported: Bools) -> Floats:
        return self.particles.mean(master, rsrp_db, reported, by=Reporting.of(self.world.settings))[0]
