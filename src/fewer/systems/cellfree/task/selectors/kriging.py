"""Draw the map from the training phones, then ask where a phone can be: Gaussian processes and Bayes' rule.

Shadowing of all access points has one spatial correlation, so one set of weights interpolates them all, and what the
interpolation leaves open is a common factor v(x) times the covariance between access points. Signals and gaps at any
place are then jointly Gaussian, and what a phone reports updates both where it may be and what it would get there.
Uses the training phones' places and everything they heard, as a drive test records them; never the true map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import ndtr

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Bools, Floats, Integers, generator
from fewer.systems.cellfree.task.selectors.particles import by_master
from fewer.systems.cellfree.task.selectors.selector import Selector
from fewer.systems.cellfree.task.survey import Survey
from fewer.systems.cellfree.task.world.deployment import Deployment

__all__ = ["Kriging", "Propagation", "estimate_propagation"]

_LARGEST_RECORD = 200_000_000  # phones x access points
_KEPT = 192  # places per phone that carry its posterior
_CHUNK = 4_000  # places interpolated at once
_NUGGET = 0.003  # share of the variance that varies within metres


@dataclass(frozen=True)
class Propagation:
    """Constants of the environment, as estimated from what phones heard."""

    intercept_db: float  # median gain at 1 m
    slope_db: float  # per decade of distance
    deviation_db: float
    site_correlation: float
    decorrelation_m: float


def log_distance(deployment: Deployment, phones: Floats) -> Floats:
    """(phones, L) log10 of metres, height included."""
    apart = deployment.displacement_m(phones[:, None], deployment.access_points[None])
    return 0.5 * np.log10((apart**2).sum(axis=-1) + deployment.height_m**2)  # type: ignore[no-any-return]


def estimate_propagation(
    deployment: Deployment, phones: Floats, heard_db: Floats, random: np.random.Generator, *, error_db: float
) -> Propagation:
    """Path loss by least squares, then shadowing's deviation and correlations from products of residuals."""
    some = random.permutation(len(phones))[:4000]
    phones, heard = phones[some], heard_db[some]
    log_m = log_distance(deployment, phones)
    slope = float(np.cov(log_m.ravel(), heard.ravel())[0, 1] / log_m.var(ddof=1))
    intercept = float(heard.mean() - slope * log_m.mean())
    shadow = heard - intercept - slope * log_m
    pairs = cKDTree(phones).query_pairs(0.1 * deployment.side_m, output_type="ndarray")
    pairs = pairs[random.permutation(len(pairs))[:40_000]]
    distance = np.linalg.norm(phones[pairs[:, 0]] - phones[pairs[:, 1]], axis=1)
    first, second = shadow[pairs[:, 0]], shadow[pairs[:, 1]]
    variance = max(float((shadow**2).mean()) - error_db**2, 1e-6)
    together = (first * second).mean(axis=1) / variance  # exp(-d / D) on average
    # D by least squares on a grid: robust where single products are noisy
    grid = np.geomspace(0.002, 0.5, 80) * deployment.side_m
    squares = [((together - np.exp(-distance / d)) ** 2).mean() for d in grid]
    common = float((shadow.mean(axis=1) ** 2).mean()) / variance
    count = len(deployment)
    correlation = (common * count - 1) / max(count - 1, 1)  # the mean of L holds 1/L of the own parts
    return Propagation(
        intercept, slope, variance**0.5, float(np.clip(correlation, 0.0, 0.99)), float(grid[np.argmin(squares)])
    )


class Kriging(Selector):
    """The posterior over an interpolated map."""

    def __init__(self, *, neighbours: int = 16, places_per_phone: int = 10) -> None:
        self.neighbours, self.places_per_phone = neighbours, places_per_phone

    def learn(self, survey: Survey) -> None:
        deployment, settings = self.world.deployment, self.world.settings
        if len(survey) * len(deployment) > _LARGEST_RECORD:
            raise UserError(
                f"{len(survey)} phones that heard {len(deployment)} access points", "at most 2e8 values",
                "split the area, or use the local model",
            )  # fmt: skip
        random = generator(deployment.seed, "kriging")
        # the record has the same error as any phone's report: no better receiver is assumed
        heard = deployment.gain_db(survey.phones)
        heard = heard + settings.error_db * random.standard_normal(heard.shape)
        self.propagation = estimate_propagation(deployment, survey.phones, heard, random, error_db=settings.error_db)
        self._interpolate(survey.phones, heard, random)

    def _interpolate(self, phones: Floats, heard: Floats, random: np.random.Generator) -> None:
        """Places all over the area with the signals expected there, under each master they may have."""
        deployment, p = self.world.deployment, self.propagation
        shadow = (heard - p.intercept_db - p.slope_db * log_distance(deployment, phones)).astype(np.float32)
        places = deployment.phones(self.places_per_phone * len(phones), part="kriging")
        box = deployment.side_m if deployment.wrap else None
        tree = cKDTree(phones, boxsize=box)
        found = [self._expected(places[i : i + _CHUNK], phones, shadow, tree) for i in range(0, len(places), _CHUNK)]
        master, signal, gap, open_share = (np.concatenate(part) for part in zip(*found))
        order, self._start = by_master(master, len(deployment))
        self._signal, self._gap, self._open = signal[order], gap[order], open_share[order]

    def _expected(
        self, places: Floats, phones: Floats, shadow: Floats, tree: cKDTree
    ) -> tuple[Integers, Floats, Floats, Floats]:
        """Masters, expected signals of what they let measure, expected gaps, and the share of variance left open."""
        deployment, p, clusters = self.world.deployment, self.propagation, self.world.clusters
        near = tree.query(places, k=min(self.neighbours, len(phones)))[1].reshape(len(places), -1)
        between = deployment.displacement_m(phones[near][:, :, None], phones[near][:, None])
        covariance = np.exp(-np.linalg.norm(between, axis=-1) / p.decorrelation_m)
        noise = (self.world.settings.error_db / p.deviation_db) ** 2 + _NUGGET
        covariance += noise * np.eye(near.shape[1])
        toward = np.exp(
            -np.linalg.norm(deployment.displacement_m(phones[near], places[:, None]), axis=-1) / p.decorrelation_m
        )
        weight = np.linalg.solve(covariance, toward[:, :, None])[:, :, 0]
        open_share = np.maximum(1.0 - (weight * toward).sum(axis=1), 1e-4)
        expected = p.intercept_db + p.slope_db * log_distance(deployment, places)
        expected += np.matmul(weight[:, None].astype(np.float32), shadow[near])[:, 0]
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
