"""What a selector's clusters cost in spectral efficiency, and what they save in measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.spectral.efficiency import DEFAULT, Setup, spectral_efficiency
from fewer.systems.cellfree.task.spectral.pilots import strongest_clusters
from fewer.systems.cellfree.task.spectral.radio import Floats, Integers, checked_clusters, checked_gain

__all__ = ["Comparison", "cdf", "compare", "pooled"]

_LIKELY = 0.05  # what 95 of 100 phones get, or more


@dataclass(frozen=True)
class Comparison:
    """Phone by phone (K,): predicted clusters against clusters from all measurements, in bit/s/Hz."""

    uplink_predicted: Floats
    uplink_ideal: Floats
    downlink_predicted: Floats
    downlink_ideal: Floats
    servers_predicted: Integers  # access points that serve
    servers_ideal: Integers
    servers_shared: Integers  # access points in both clusters
    measured: Integers  # access points measured for the prediction
    measurable: Integers  # access points that the ideal needs measured: all

    @property
    def metrics(self) -> dict[str, float]:
        """Medians, 95 %-likely and mean efficiencies, percent lost, measurements saved."""
        found: dict[str, float] = {"phones": float(len(self.measured))}
        for link in ("uplink", "downlink"):
            predicted, ideal = getattr(self, f"{link}_predicted"), getattr(self, f"{link}_ideal")
            pairs = {
                "median": (np.median(predicted), np.median(ideal)),
                "likely95": (np.quantile(predicted, _LIKELY), np.quantile(ideal, _LIKELY)),
                "mean": (predicted.mean(), ideal.mean()),
            }
            for name, (ours, best) in pairs.items():
                found[f"{link}_{name}_predicted"] = float(ours)
                found[f"{link}_{name}_ideal"] = float(best)
                found[f"{link}_{name}_lost_percent"] = float(100 * (1 - ours / best))
            found[f"{link}_lost_percent_of_median_phone"] = float(100 * np.median(1 - predicted / ideal))
        found["servers_per_phone_predicted"] = float(self.servers_predicted.mean())
        found["servers_per_phone_ideal"] = float(self.servers_ideal.mean())
        found["servers_agreeing_percent"] = float(100 * self.servers_shared.sum() / self.servers_predicted.sum())
        found["measurements_per_phone"] = float(self.measured.mean())
        found["measurements_saved_per_phone"] = float((self.measurable - self.measured).mean())
        found["measurements_saved_percent"] = float(100 * (1 - self.measured.sum() / self.measurable.sum()))
        return found

    @property
    def cdfs(self) -> dict[str, tuple[Floats, Floats]]:
        """Efficiencies in ascending order with the share of phones that get no more, per link and kind."""
        names = ("uplink_predicted", "uplink_ideal", "downlink_predicted", "downlink_ideal")
        return {name: cdf(getattr(self, name)) for name in names}


def cdf(values: ArrayLike) -> tuple[Floats, Floats]:
    """The empirical distribution: sorted values, and the share of values not above each."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    return ordered, np.arange(1, len(ordered) + 1) / len(ordered)


def compare(
    gain_db: ArrayLike,
    predicted: ArrayLike,
    ideal: ArrayLike | None = None,
    *,
    setup: Setup = DEFAULT,
    correlation: ArrayLike | None = None,
    measured: ArrayLike = 3,
) -> Comparison:
    """The predicted clusters (K, L) against `ideal` ones, by default each phone's as many strongest access points.

    Pilots and fading draws are common to both sides, so the difference is that of the clusters. `measured` counts
    the measurements behind the prediction, one number or one a phone.
    """
    gain = checked_gain(gain_db)
    ours = checked_clusters(predicted, gain.shape, "predicted clusters")
    best = strongest_clusters(gain, ours.sum(axis=1)) if ideal is None else ideal
    best = checked_clusters(best, gain.shape, "ideal clusters")
    phones, points = gain.shape
    used = np.asarray(measured)
    if used.shape not in ((), (phones,)) or not np.issubdtype(used.dtype, np.integer):
        raise UserError(f"measured of shape {used.shape} and type {used.dtype}", f"a whole number, or {phones}")
    if used.min() < 0 or used.max() > points:
        raise UserError(f"{used.min()} to {used.max()} measurements a phone", f"0 to {points}, the access points")
    got = spectral_efficiency(gain, ours, setup=setup, correlation=correlation)
    could = spectral_efficiency(gain, best, setup=setup, correlation=correlation, pilots=got.pilots)
    return Comparison(
        uplink_predicted=got.uplink,
        uplink_ideal=could.uplink,
        downlink_predicted=got.downlink,
        downlink_ideal=could.downlink,
        servers_predicted=got.clusters.sum(axis=1),
        servers_ideal=could.clusters.sum(axis=1),
        servers_shared=(got.clusters & could.clusters).sum(axis=1),
        measured=np.broadcast_to(used, (phones,)).astype(np.int64),
        measurable=np.full(phones, points, dtype=np.int64),
    )


def pooled(comparisons: Sequence[Comparison]) -> Comparison:
    """Many drops of phones, or many deployments, as one population."""
    if not comparisons:
        raise UserError("no comparisons", "at least one")
    return Comparison(
        **{
            field.name: np.concatenate([getattr(one, field.name) for one in comparisons])
            for field in fields(Comparison)
        }
    )
