"""Draw the map from the training phones, then ask where a phone can be: Gaussian processes and Bayes' rule.

Signals and gaps at any place are jointly Gaussian, and what a phone reports updates both where it may be and what it
would get there. Uses the training phones' places and everything they heard, as a drive test records them; never the
true map.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from fewer.systems.cellfree.task.arrays import Bools, Floats, Integers
from fewer.systems.cellfree.task.selectors.particles import by_master
from fewer.systems.cellfree.task.selectors.selector import Selector
from fewer.systems.cellfree.task.survey import Survey
from fewer.systems.cellfree.task.world.interpolation import Interpolation

__all__ = ["Kriging"]

_KEPT = 192  # places per phone that carry its posterior
_CHUNK = 4_000  # places interpolated at once


class Kriging(Selector):
    """The posterior over an interpolated map."""

    def __init__(self, *, neighbours: int = 16, places_per_phone: int = 10) -> None:
        self.neighbours, self.places_per_phone = neighbours, places_per_phone

    def learn(self, survey: Survey) -> None:
        deployment, error_db = self.world.deployment, self.world.settings.error_db
        self.map = Interpolation(deployment, survey.phones, error_db=error_db, neighbours=self.neighbours)
        self.propagation = self.map.propagation
        # places all over the area with the signals expected there, under each master they may have
        places = deployment.phones(self.places_per_phone * len(survey), part="kriging")
        found = [self._expected(places[i : i + _CHUNK]) for i in range(0, len(places), _CHUNK)]
        master, signal, gap, open_share = (np.concatenate(part) for part in zip(*found))
        order, self._start = by_master(master, len(deployment))
        self._signal, self._gap, self._open = signal[order], gap[order], open_share[order]

    def _expected(self, places: Floats) -> tuple[Integers, Floats, Floats, Floats]:
        """Masters, expected signals of what they let measure, expected gaps, and the share of variance left open."""
        p, clusters = self.propagation, self.world.clusters
        expected, open_share = self.map.at(places)
        # who can be the strongest here: those within three deviations of what interpolation leaves open
        margin = 3.0 * p.deviation_db * np.sqrt(2 * open_share * (1 - p.site_correlation))
        place, master = np.nonzero(expected >= expected.max(axis=1, keepdims=True) - margin[:, None])
        signal = expected[place[:, None], clusters.measured[master]]
        gap = expected[place, master][:, None] - expected[place[:, None], clusters.candidates[master]]
        return master, signal.astype(np.float32), gap.astype(np.float32), open_share[place].astype(np.float32)

    def scores(self, master: Integers, rsrp_db: Floats, reported: Bools) -> Floats:
        found = np.zeros((len(master), self._gap.shape[1]))
        order, first = by_master(master, len(self.world.clusters))
        for m in np.unique(master):
            rows = order[first[m] : first[m + 1]]
            if self._start[m] == self._start[m + 1]:
                found[rows, 0] = 1.0  # no place is served by this master: only the report says so
                continue
            for some in (rows[i : i + 100] for i in range(0, len(rows), 100)):
                found[some] = self._posterior(int(m), rsrp_db[some], reported[some])
        return found

    def _posterior(self, m: int, rsrp_db: Floats, reported: Bools) -> Floats:
        """(phones, c + 1) for phones of one master."""
        p, own = self.propagation, slice(self._start[m], self._start[m + 1])
        separate = self._open[own] * np.float32(p.deviation_db**2 * (1 - p.site_correlation))
        common = self._open[own] * np.float32(p.deviation_db**2 * p.site_correlation)
        a = separate + np.float32(max(self.world.settings.error_db**2, 1e-4))  # covariance of reports: a I + b 11'
        seen = reported.sum(axis=1, dtype=np.float32)[:, None]
        shrink = common / (a + seen * common)  # (phones, places): (a I + b 11')^-1 = (I - shrink 11') / a
        total, squares = np.zeros_like(shrink), np.zeros_like(shrink)
        for column in range(rsrp_db.shape[1]):
            miss = rsrp_db[:, column, None].astype(np.float32) - self._signal[None, own, column]
            miss *= reported[:, column, None]
            total += miss
            squares += miss * miss
        likelihood = -0.5 * ((squares - shrink * total**2) / a + (seen - 1) * np.log(a) + np.log(a + seen * common))
        best = _sampled(likelihood, _KEPT)
        shrink, total = (np.take_along_axis(x, best, axis=1) for x in (shrink, total))
        separate, a = separate[best], a[best]
        miss = np.where(reported[:, None], rsrp_db[:, None] - self._signal[best + own.start], 0.0)
        solved = np.where(reported[:, None], (miss - (shrink * total)[:, :, None]) / a[:, :, None], 0.0)
        place = best + own.start
        return self._serving(self._gaps(m, place, solved, reported, (separate, a, shrink)))

    def _gaps(
        self, m: int, place: Integers, solved: Floats, reported: Bools, parts: tuple[Floats, Floats, Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """(phones, kept, c + 1) mean and variance of the gaps at those places given the reports, and of the master."""
        separate, a, shrink = parts
        same = self.world.clusters.measured[m][:, None] == self.world.clusters.candidates[m][None]  # (n, c + 1)
        toward = np.matmul(solved, same.astype(np.float64))  # what each candidate's own report says
        mean = self._gap[place] + separate[:, :, None] * (solved[:, :, :1] - toward)
        known = (reported[:, :, None] & same[None]).any(axis=1)[:, None]  # (phones, 1, c + 1)
        explained = separate**2 / a
        own = separate - explained * (1 - shrink)  # of the master's own shadowing
        variance = np.where(known, (2 * separate - 2 * explained)[:, :, None], (separate + own)[:, :, None])
        return mean, variance, own

    def _serving(self, gaps: tuple[Floats, Floats, Floats]) -> Floats:
        """Probabilities, averaged over places and over what the master's own shadowing may be.

        A master is the strongest, so all gaps are positive: places where that is unlikely count less. Given the
        master's shadowing the gaps are independent, so that is a product, integrated by three nodes of Gauss-Hermite.
        """
        mean, variance, own = gaps
        rest = np.sqrt(np.maximum(variance - own[:, :, None], 1e-3))
        found, weights = np.zeros((len(mean), mean.shape[2])), np.zeros((len(mean), 1))
        for node, share in ((-(3**0.5), 1 / 6), (0.0, 2 / 3), (3**0.5, 1 / 6)):
            gap = mean + node * np.sqrt(own)[:, :, None]
            positive = np.maximum(ndtr(gap / rest), 1e-9)
            within = np.clip((ndtr((self.world.settings.threshold_db - gap) / rest) + positive - 1) / positive, 0, 1)
            weight = share * np.prod(positive[:, :, 1:], axis=2)
            found += np.einsum("pk,pkc->pc", weight, within)
            weights += weight.sum(axis=1, keepdims=True)
        found /= np.maximum(weights, 1e-300)
        found[:, 0] = 1.0
        return found  # type: ignore[no-any-return]


def _sampled(likelihood: Floats, count: int) -> Integers:
    """(phones, count) places drawn in proportion to exp(likelihood), evenly spaced: the best ones alone would be sure.

    A phone's error spreads it over more places than can be followed; a sample keeps the spread, a choice would not.
    """
    weight = np.exp(likelihood - likelihood.max(axis=1, keepdims=True), dtype=np.float64)
    reach = np.cumsum(weight, axis=1)
    reach /= reach[:, -1:]
    row = np.arange(len(weight))[:, None]
    wanted = row + (np.arange(count) + 0.5) / count
    found = np.searchsorted((reach + row).ravel(), wanted.ravel()).reshape(len(weight), count)
    return np.asarray(np.minimum(found - row * weight.shape[1], weight.shape[1] - 1))
