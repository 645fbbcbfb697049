"""Gradient boosting on what is known locally and on what similar phones of the same master got."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from fewer.systems.cellfree.task.arrays import Bools, Floats, Integers
from fewer.systems.cellfree.task.selectors.particles import Particles, by_master
from fewer.systems.cellfree.task.selectors.reporting import Reporting
from fewer.systems.cellfree.task.selectors.selector import Selector
from fewer.systems.cellfree.task.survey import Survey

__all__ = ["Boosting"]


class Boosting(Selector):
    """Trees over (phone, candidate) pairs: reports, where the candidate lies, and kernel fingerprints of three widths.

    Fingerprints of the training phones leave each phone itself out, or the trees would learn to trust an answer key.
    Reports are never extrapolated to other masters' phones: the fingerprint carries what is special about a place.
    """

    def __init__(self, *, widths_db: tuple[float, ...] = (1.0, 2.0, 4.0), rounds: int = 120, seed: int = 0) -> None:
        self.widths_db, self.rounds, self.seed = widths_db, rounds, seed

    def learn(self, survey: Survey) -> None:
        world = self.world
        self._between = world.deployment.gain_to(world.deployment.access_points, world.clusters.candidates)
        serves = survey.serves(self.world.settings.threshold_db)
        self.particles = Particles.of(survey, np.concatenate([serves, survey.gap_db], axis=1), len(self.world.clusters))
        order, _ = by_master(survey.master, len(self.world.clusters))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        table = self._features(survey.master, survey.rsrp_db, survey.reported, but=place)
        self.trees = HistGradientBoostingClassifier(
            max_iter=self.rounds, learning_rate=0.08, max_leaf_nodes=31, l2_regularization=1.0,
            min_samples_leaf=40, early_stopping=False, random_state=self.seed,
        )  # fmt: skip
        self.trees.fit(table.reshape(-1, table.shape[2]), serves[:, 1:].ravel())

    def scores(self, master: Integers, rsrp_db: Floats, reported: Bools) -> Floats:
        table = self._features(master, rsrp_db, reported, but=None)
        found = self.trees.predict_proba(table.reshape(-1, table.shape[2]))[:, 1].reshape(table.shape[:2])
        return np.concatenate([np.ones((len(master), 1)), found], axis=1)

    def _features(self, master: Integers, rsrp_db: Floats, reported: Bools, but: Integers | None) -> Floats:
        """(phones, c, features), missing reports as NaN, which the trees treat as such."""
        deployment, clusters = self.world.deployment, self.world.clusters
        positions, members = deployment.access_points, clusters.candidates[master]
        slots = members.shape[1]
        heard = np.where(reported, rsrp_db, np.nan)
        local = np.concatenate([heard[:, :1], heard[:, :1] - heard[:, 1:], positions[master]], axis=1)
        parts = [np.broadcast_to(local[:, None], (len(master), slots - 1, local.shape[1]))]
        parts.append(deployment.displacement_m(positions[master][:, None], positions[members[:, 1:]]))
        between = self._between[master, 1:]
        parts += [
            between[:, :, None],
            np.broadcast_to(np.arange(1.0, slots)[None, :, None], (len(master), slots - 1, 1)),
        ]
        for width in self.widths_db:
            mean, spread = self.particles.mean(master, rsrp_db, reported, by=Reporting(width), but=but)
            parts += [mean[:, 1:slots, None], mean[:, slots + 1 :, None]]
            parts.append(np.broadcast_to(spread[:, None, None], (len(master), slots - 1, 1)))
        return np.concatenate(parts, axis=2)
