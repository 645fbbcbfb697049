"""What any learner could reach: the posterior over the true map, how close selectors come, and what to measure next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Bools, Floats, Integers, generator
from fewer.systems.cellfree.task.clusters import Clusters
from fewer.systems.cellfree.task.selectors.particles import Particles, true_particles
from fewer.systems.cellfree.task.selectors.reporting import FLOOR_DB, Reporting
from fewer.systems.cellfree.task.selectors.selector import Selector
from fewer.systems.cellfree.task.statistics import metrics
from fewer.systems.cellfree.task.survey import Survey, World, reports

__all__ = ["Ceiling", "ceiling_table", "closeness"]


def _deeper(world: World, measured: int) -> World:
    """The same world in which phones measure more of their candidates."""
    order = world.clusters.candidates[:, :measured]
    if not np.array_equal(order[:, : world.clusters.measured.shape[1]], world.clusters.measured[:, :measured]):
        raise UserError("learned candidates", "candidates by distance or signal", "set cluster_by=distance")
    settings = replace(world.settings, measured=measured)
    return World(settings, world.deployment, Clusters(world.clusters.candidates, order.copy()))


@dataclass(frozen=True)
class Ceiling:
    """Places all over a deployment with everything their phones would hear: for any number of reports, any error."""

    world: World
    particles: Particles

    @classmethod
    def of(cls, world: World, *, places: int = 1_000_000, measured: int = 8) -> Ceiling:
        """Look at the true map."""
        deep = _deeper(world, min(measured, world.clusters.candidates.shape[1]))
        seen, earlier = true_particles(deep, places)
        return cls(deep, Particles.of(seen, seen.gap_db, len(world.clusters), earlier))

    def metrics(self, survey: Survey, *, measured: int, error_db: float) -> dict[str, float]:
        """What the posterior reaches on phones of the deeper world, whose reports have this error, and are rounded,
        old and lost as its settings say."""
        random = generator(self.world.deployment.seed, f"ceiling/{measured}/{error_db}")
        disturbed = replace(self.world, settings=replace(self.world.settings, error_db=error_db))
        rsrp, arrived = reports(disturbed, survey.phones, survey.master, random)
        reported = arrived & (np.arange(rsrp.shape[1]) < measured)
        scores = self.scores(survey.master, rsrp, reported, error_db=error_db)
        return metrics(scores, survey, self.world.settings.threshold_db)

    def scores(self, master: Integers, rsrp_db: Floats, reported: Bools, *, error_db: float) -> Floats:
        """(n, c + 1) probabilities of serving."""
        serves = (self.particles.value < self.world.settings.threshold_db).astype(np.float32)
        by = Reporting.of(self.world.settings, error_db)
        return replace(self.particles, value=serves).mean(master, rsrp_db, reported, by=by)[0]

    def measure_next(
        self, master: int, rsrp_db: Floats, reported: Bools, *, error_db: float, draws: int = 24
    ) -> list[tuple[int, float]]:
        """Candidates not yet measured, with the bits about who serves that measuring each is expected to give.

        For places drawn from what is known now, imagine the report, and see how much less open the links would be.
        """
        own = slice(self.particles.start[master], self.particles.start[master + 1])
        if own.start == own.stop:
            raise UserError(f"master {master}, which serves no place", "a master with phones")
        settings, width = self.world.settings, max(FLOOR_DB, error_db)
        gap, signal = self.particles.value[own], self.particles.signal_db[own]
        serves = (gap[:, 1:] < settings.threshold_db).astype(np.float64)
        weight = self.particles.weights(own, rsrp_db[None], reported[None], Reporting.of(settings, error_db))[0].astype(
            np.float64
        )
        weight /= weight.sum()
        now = _entropy(weight @ serves)
        random = generator(self.world.deployment.seed, f"next/{master}")
        drawn = random.choice(len(weight), draws, p=weight)
        every = signal[:, :1] - gap  # what every candidate's signal is at each place
        known = set(self.world.clusters.measured[master][: len(reported)][reported].tolist())
        found = []
        for slot in range(1, gap.shape[1]):
            if int(self.world.clusters.candidates[master, slot]) in known:
                continue
            report = every[drawn, slot] + error_db * random.standard_normal(draws)
            fits = weight * np.exp(-0.5 * ((report[:, None] - every[None, :, slot]) / width) ** 2)
            after = (fits / fits.sum(axis=1, keepdims=True).clip(1e-300)) @ serves
            gain = now - float(np.mean([_entropy(row) for row in after]))
            found.append((int(self.world.clusters.candidates[master, slot]), gain))
        return sorted(found, key=lambda pair: -pair[1])


def _entropy(probability: Floats) -> float:
    """Bits that are open, summed over links."""
    p = probability.clip(1e-12, 1 - 1e-12)
    return float(-(p * np.log2(p) + (1 - p) * np.log2(1 - p)).sum())


def ceiling_table(
    world: World,
    *,
    phones: int = 4000,
    places: int = 1_000_000,
    measured: Sequence[int] = (1, 2, 3, 5, 8),
    errors_db: Sequence[float] = (0.0, 1.0, 2.0, 4.0),
) -> list[dict[str, float]]:
    """One row per error and number of reports: what the posterior reaches."""
    ceiling = Ceiling.of(world, places=places, measured=max(measured))
    survey = ceiling.world.survey(phones, part="test")
    return [
        {"error_db": error, "measured": count, **ceiling.metrics(survey, measured=count, error_db=error)}
        for error in errors_db
        for count in measured
    ]


def closeness(
    selectors: Mapping[str, Selector], survey: Survey, ceiling: Ceiling, *, name: str = "average_precision"
) -> list[dict[str, float | str]]:
    """Each selector's figure and its share of the ceiling's, on the same phones with the same reports."""
    settings = ceiling.world.settings
    pad = ceiling.particles.signal_db.shape[1] - survey.rsrp_db.shape[1]
    rsrp, reported = (np.pad(part, ((0, 0), (0, pad))) for part in (survey.rsrp_db, survey.reported))
    best = ceiling.scores(survey.master, rsrp, reported, error_db=settings.error_db)
    top = metrics(best, survey, settings.threshold_db)
    rows: list[dict[str, float | str]] = []
    for label, selector in selectors.items():
        own = selector.metrics(survey)
        rows.append({"selector": label, **own, "share_of_ceiling": own[name] / top[name]})
    return [*rows, {"selector": "ceiling", **top, "share_of_ceiling": 1.0}]
