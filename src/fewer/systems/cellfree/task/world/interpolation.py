"""The map that phones draw: a Gaussian process through everything they heard, and what it leaves open.

Shadowing of all access points has one spatial correlation, so one set of weights interpolates them all, and what the
interpolation leaves open at a place is a common factor v(x) times the covariance between access points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Floats, generator
from fewer.systems.cellfree.task.world.deployment import Deployment

__all__ = ["Interpolation", "Propagation", "estimate_propagation"]

_LARGEST_RECORD = 200_000_000  # phones x access points
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


class Interpolation:
    """Signals expected at any place of a deployment, from phones that heard all access points there."""

    def __init__(self, deployment: Deployment, phones: Floats, *, error_db: float, neighbours: int = 16) -> None:
        if len(phones) * len(deployment) > _LARGEST_RECORD:
            raise UserError(
                f"{len(phones)} phones that heard {len(deployment)} access points", "at most 2e8 values",
                "split the area, or learn from phones",
            )  # fmt: skip
        random = generator(deployment.seed, "kriging")
        # the record has the same error as any phone's report: no better receiver is assumed
        heard = deployment.gain_db(phones)
        heard = heard + error_db * random.standard_normal(heard.shape)
        self.deployment, self.phones, self.neighbours = deployment, phones, min(neighbours, len(phones))
        self.propagation = p = estimate_propagation(deployment, phones, heard, random, error_db=error_db)
        self._noise = (error_db / p.deviation_db) ** 2 + _NUGGET
        self._shadow = (heard - p.intercept_db - p.slope_db * log_distance(deployment, phones)).astype(np.float32)
        self._tree = cKDTree(phones, boxsize=deployment.side_m if deployment.wrap else None)

    def at(self, places: Floats) -> tuple[Floats, Floats]:
        """(places, L) expected signals, and (places,) the share of the shadowing's variance that is left open."""
        deployment, p = self.deployment, self.propagation
        near = self._tree.query(places, k=self.neighbours)[1].reshape(len(places), -1)
        between = deployment.displacement_m(self.phones[near][:, :, None], self.phones[near][:, None])
        covariance = np.exp(-np.linalg.norm(between, axis=-1) / p.decorrelation_m)
        covariance += self._noise * np.eye(near.shape[1])
        apart = np.linalg.norm(deployment.displacement_m(self.phones[near], places[:, None]), axis=-1)
        toward = np.exp(-apart / p.decorrelation_m)
        weight = np.linalg.solve(covariance, toward[:, :, None])[:, :, 0]
        expected = p.intercept_db + p.slope_db * log_distance(deployment, places)
        expected += np.matmul(weight[:, None].astype(np.float32), self._shadow[near])[:, 0]
        return expected, np.maximum(1.0 - (weight * toward).sum(axis=1), 1e-4)
