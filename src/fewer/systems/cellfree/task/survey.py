"""Phones, what they report, and what would be true of every candidate: the data of the task.

"Not reported" is a mask. A missing value is stored as 0 only so that arithmetic stays finite; nothing may read it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fewer.systems.cellfree.task.arrays import Bools, Floats, Integers, generator
from fewer.systems.cellfree.task.clusters import Clusters, closest, learned, strongest
from fewer.systems.cellfree.task.files.measured import read_deployment
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.world.deployment import Deployment

__all__ = ["Survey", "World", "before", "reports"]


@dataclass(frozen=True)
class Survey:
    """Phones of one deployment, one row each."""

    phones: Floats  # (n, 2) in metres
    master: Integers  # (n,), the strongest access point
    rsrp_db: Floats  # (n, measured), the master first
    reported: Bools  # (n, measured)
    gap_db: Floats  # (n, c + 1), how far each candidate lies below the master; 0 for the master itself
    serving: Integers  # (n,), access points of the whole network within the threshold, master included
    power_share: Floats  # (n,), of the uplink power at all access points, what serving candidates receive

    def __len__(self) -> int:
        return len(self.master)

    def rows(self, index: Integers | slice) -> Survey:
        """Some of the phones."""
        return Survey(
            self.phones[index],
            self.master[index],
            self.rsrp_db[index],
            self.reported[index],
            self.gap_db[index],
            self.serving[index],
            self.power_share[index],
        )

    def serves(self, threshold_db: float) -> Bools:
        """(n, c + 1) labels."""
        return self.gap_db < threshold_db


@dataclass(frozen=True)
class World:
    """A deployment, its clusters, and how phones measure: everything a survey needs."""

    settings: Settings
    deployment: Deployment
    clusters: Clusters

    @classmethod
    def make(cls, settings: Settings, deployment: Deployment | None = None) -> World:
        """The deployment the settings describe, or a given one, with candidates chosen as they say."""
        if deployment is None:
            deployment = read_deployment(settings) if settings.maps else Deployment.simulate(settings)
        rule = strongest if settings.cluster_by == "rsrp" else closest
        world = cls(settings, deployment, rule(deployment, settings.candidates, settings.measured))
        return world.with_learned_candidates() if settings.cluster_by == "learned" else world

    def with_learned_candidates(self) -> World:
        """The same world with candidates learned from the training phones."""
        phones = self.deployment.phones(self.settings.train_phones, part="train")
        near, gain = self.deployment.audible(phones)
        best = gain.argmax(axis=1)
        gap = gain.max(axis=1, keepdims=True) - gain
        master = np.take_along_axis(near, best[:, None], axis=1)[:, 0]
        clusters = learned(self.clusters, master, near, gap, threshold_db=self.settings.threshold_db)
        return replace(self, clusters=clusters)

    def survey(self, count: int, *, part: str) -> Survey:
        """Fresh phones of a part such as train or test; the same ones whenever asked."""
        phones = self.deployment.phones(count, part=part)
        return self.survey_at(phones, generator(self.deployment.seed, f"reports/{part}"))

    def survey_at(self, phones: Floats, random: np.random.Generator) -> Survey:
        """What phones at these places are, report and would get."""
        near, gain = self.deployment.audible(phones)
        best = gain.argmax(axis=1)
        master = np.take_along_axis(near, best[:, None], axis=1)[:, 0].astype(np.int64)
        strength = gain.max(axis=1)
        threshold = self.settings.threshold_db
        candidate_gain = self.deployment.gain_to(phones, self.clusters.candidates[master])
        gap = strength[:, None] - candidate_gain
        rsrp, reported = reports(self, phones, master, random)
        serves = gap < threshold
        total = (10 ** (-(strength[:, None] - gain) / 10)).sum(axis=1)
        # far candidates may lie beyond the audible ones; they never serve fewer than themselves
        serving = np.maximum((strength[:, None] - gain < threshold).sum(axis=1), serves.sum(axis=1))
        share = (10 ** (-gap / 10) * serves).sum(axis=1) / total
        return Survey(phones, master, rsrp, reported, gap, serving, share)


def before(world: World, phones: Floats, angle: Floats) -> Floats:
    """(n, 2) where phones were that moved on by `stale_m` against this angle."""
    settings = world.settings
    places = phones + settings.stale_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if settings.maps:  # a user's own radio environment knows where it ends
        return np.asarray(places)
    return np.asarray(places % settings.side_m if settings.wrap else places.clip(0.0, settings.side_m))


def reports(world: World, phones: Floats, master: Integers, random: np.random.Generator) -> tuple[Floats, Bools]:
    """(n, measured) reported RSRP in dB with error, staleness and resolution, and which reports arrived."""
    settings, links = world.settings, world.clusters.measured[master]
    rsrp = world.deployment.gain_to(phones, links)
    # every kind of disturbance draws in any case, so that switching one on leaves the others as they were
    error = random.standard_normal(rsrp.shape)
    angle = random.uniform(0.0, 2 * np.pi, len(phones))
    old, lost = random.uniform(size=rsrp.shape), random.uniform(size=rsrp.shape)
    if settings.stale:
        rsrp = np.where(old < settings.stale, world.deployment.gain_to(before(world, phones, angle), links), rsrp)
    heard = rsrp > world.deployment.silent_db
    rsrp = rsrp + settings.error_db * error
    if settings.quantum_db:
        rsrp = settings.quantum_db * np.round(rsrp / settings.quantum_db)
    reported = (lost >= settings.missing) & heard
    reported[:, 0] = True
    return np.where(reported, rsrp, 0.0), reported
