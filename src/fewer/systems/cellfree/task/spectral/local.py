"""Processing inside access points: moments of what combiners gather, and the rates that follow from them.

The use-and-then-forget bound in the uplink and the hardening bound in the downlink need the same moments, of
g_ki = [v_kl^H h_il for each server l of k]. Drawn estimates give them for any combiner, closed forms for MR.
Combiners are scaled to unit mean power per access point, so the noise behind them is the identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fewer.systems.cellfree.task.spectral.channels import Channels, draw
from fewer.systems.cellfree.task.spectral.combining import Group, groups, local_combiners, partners
from fewer.systems.cellfree.task.spectral.radio import Bools, Complexes, Floats

__all__ = ["Moments", "Sent", "closed_moments", "drawn_moments", "uplink_sinr"]


@dataclass(frozen=True)
class Sent:
    """Who serves whom and with what power."""

    clusters: Bools  # (K, L)
    uplink: Floats  # (K,) sent by phones
    downlink: Floats  # (K, L) sent by access points to phones


@dataclass(frozen=True)
class Moments:
    """What the bounds need of a group's combiners v."""

    group: Group
    mean: Complexes  # (G, m): E g_kk
    heard: Complexes  # (G, m, m): sum_i p_i E g_ki g_ki^H over all phones
    near: Complexes  # (G, m, m): the same over phones that share a server
    leak: Floats  # (G, K): power that a group's precoders bring to all phones
    power: Floats  # (G, m): E |v|^2 before scaling


def drawn_moments(channels: Channels, sent: Sent, scheme: str, *, realisations: int, seed: int) -> Iterator[Moments]:
    """Moments of MR or LP-MMSE by Monte Carlo over the estimates, exact over the estimation errors."""
    power = np.zeros(sent.clusters.T.shape)  # (L, K)
    blocks = 0
    for estimates in draw(channels, realisations, seed=seed):
        combiners = local_combiners(estimates, channels, sent.clusters, sent.uplink, scheme)
        power += (np.abs(combiners) ** 2).sum(axis=(0, 3)) / realisations
        blocks += 1
    scale = 1 / np.sqrt(power)
    parts = groups(sent.clusters, estimates.shape[-1], len(estimates))
    near = partners(sent.clusters)
    totals = [_Totals(part, sent, near[part.phones]) for part in parts]
    again = draw(channels, realisations, seed=seed) if blocks > 1 else (estimates,)
    for estimates in again:
        combiners = local_combiners(estimates, channels, sent.clusters, sent.uplink, scheme) * scale[..., None]
        for total in totals:
            total.add(estimates, combiners)
    for total in totals:
        yield total.moments(channels, power, realisations)


class _Totals:
    """Sums over realisations for one group."""

    def __init__(self, group: Group, sent: Sent, near: Bools) -> None:
        count, size = group.points.shape
        phones = len(sent.uplink)
        self.group = group
        self.weight = np.broadcast_to(sent.uplink, (count, phones))
        self.near_weight = self.weight * near
        self.amplitude = np.sqrt(np.take_along_axis(sent.downlink[group.phones], group.points, axis=1))
        self.mean = np.zeros((count, size), dtype=np.complex128)
        self.heard = np.zeros((count, size, size), dtype=np.complex128)
        self.near = np.zeros_like(self.heard)
        self.leak = np.zeros((count, phones))
        self.spread: Complexes | float = 0.0  # sum of v v^H, (G, m, N, N)

    def add(self, estimates: Complexes, combiners: Complexes) -> None:
        group = self.group
        rows = np.arange(len(group.phones))
        own = combiners[:, group.points, group.phones[:, None]]  # (R, G, m, N)
        gathered = (group.heard(estimates) @ own.conj()[..., None])[..., 0]  # g: (R, G, m, K)
        back = gathered.conj().swapaxes(-1, -2)
        self.mean += gathered[:, rows, :, group.phones].sum(axis=1)
        self.heard += ((gathered * self.weight[:, None]) @ back).sum(axis=0)
        self.near += ((gathered * self.near_weight[:, None]) @ back).sum(axis=0)
        self.leak += (np.abs((self.amplitude[:, None] @ gathered)[..., 0, :]) ** 2).sum(axis=0)
        self.spread = self.spread + np.einsum("rgmn,rgmp->gmnp", own, own.conj())

    def moments(self, channels: Channels, power: Floats, realisations: int) -> Moments:
        group = self.group
        # the error of an estimate is independent of every combiner: E |v^H e|^2 = tr(C E v v^H)
        missed = np.einsum("gmknp,gmpn->gmk", channels.error[group.points], self.spread, optimize=True).real
        diagonal = np.eye(group.points.shape[1])
        heard = self.heard + (missed @ self.weight[..., None]) * diagonal
        near = self.near + (missed @ self.near_weight[..., None]) * diagonal
        leak = self.leak + np.einsum("gm,gmk->gk", self.amplitude**2, missed)
        return Moments(
            group,
            mean=self.mean / realisations,
            heard=heard / realisations,
            near=near / realisations,
            leak=leak / realisations,
            power=power[group.points, group.phones[:, None]],
        )


def closed_moments(channels: Channels, sent: Sent) -> Iterator[Moments]:
    """The exact moments of MR on correlated Rayleigh channels.

    E v_k^H h_i = tr(F_i F_k^H) on a shared pilot, else 0; the variance is tr(B_k R_i) in either case.
    """
    near = partners(sent.clusters)
    for group in groups(sent.clusters, channels.error.shape[-1], 1):
        own = (group.points, group.phones[:, None])
        power = np.einsum("gmnn->gm", channels.estimated[own]).real
        same = channels.pilots == channels.pilots[group.phones][:, None]  # (G, K)
        shaping, covariance = channels.shaping[group.points], channels.covariance[group.points]
        mean = np.einsum("gmknp,gmnp->gmk", shaping, channels.shaping[own].conj(), optimize=True)
        mean *= same[:, None] / np.sqrt(power)[..., None]
        varied = np.einsum("gmnp,gmkpn->gmk", channels.estimated[own], covariance, optimize=True).real
        varied /= power[..., None]
        amplitude = np.sqrt(np.take_along_axis(sent.downlink[group.phones], group.points, axis=1))
        weights = np.broadcast_to(sent.uplink, same.shape)
        sums = []
        for weight in (weights, weights * near[group.phones]):
            coherent = (mean * weight[:, None]) @ mean.conj().swapaxes(-1, -2)
            sums.append(coherent + (varied @ weight[..., None]) * np.eye(group.points.shape[1]))
        leak = np.abs(np.einsum("gm,gmk->gk", amplitude, mean)) ** 2 + np.einsum("gm,gmk->gk", amplitude**2, varied)
        signal = mean[np.arange(len(same)), :, group.phones]
        yield Moments(group, mean=signal, heard=sums[0], near=sums[1], leak=leak, power=power)


def uplink_sinr(moments: Moments, power: Floats, weighting: str) -> Floats:
    """Effective SINR (G,) after weighting the access points' local estimates (large-scale fading decoding).

    n-opt and opt weights maximise it against the near and against all interferers; none adds the estimates up.
    Weights fitted to few draws flatter themselves: by 0.6 % of the mean rate at 50 realisations, 0.2 % at 200.
    """
    noise = np.eye(moments.mean.shape[1])
    if weighting == "none":
        weights: Complexes = np.sqrt(moments.power).astype(np.complex128)
    else:
        known = moments.near if weighting == "n-opt" else moments.heard
        weights = np.linalg.solve(known + noise, moments.mean[..., None])[..., 0]
    signal = power[moments.group.phones] * np.abs((weights.conj() * moments.mean).sum(axis=1)) ** 2
    total = np.einsum("gm,gmn,gn->g", weights.conj(), moments.heard + noise, weights, optimize=True).real
    return np.asarray(signal / (total - signal))
