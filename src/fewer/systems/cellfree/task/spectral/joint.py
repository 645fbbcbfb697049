"""Processing across access points: P-MMSE, scalable as it nulls only phones that share a server, and full MMSE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewer.systems.cellfree.task.spectral.channels import Channels, draw
from fewer.systems.cellfree.task.spectral.combining import Group, groups, joint_combiners, partners
from fewer.systems.cellfree.task.spectral.radio import Bools, Complexes, Floats

__all__ = ["Joint", "joint_moments"]


@dataclass
class Joint:
    """Means over the realisations for all phones; combiners v as they come, E |v|^2 in `power`."""

    uplink_bits: Floats  # (K,): E log2(1 + SINR), the receiver knowing all estimates
    mean: Complexes  # (K,): E v_k^H h_k
    leak: Floats  # (K, K): E |v_i^H h_k|^2, row i the sender's precoder
    power: Floats  # (K, L): E |v_kl|^2


def joint_moments(
    channels: Channels, clusters: Bools, uplink: Floats, scheme: str, *, realisations: int, seed: int
) -> Joint:
    """Uplink rates and downlink moments of P-MMSE or MMSE by Monte Carlo over the estimates."""
    phones = len(uplink)
    known = partners(clusters) if scheme == "p-mmse" else np.ones((phones, phones), dtype=np.bool_)
    result = Joint(
        np.zeros(phones), np.zeros(phones, dtype=np.complex128), np.zeros((phones, phones)), np.zeros(clusters.shape)
    )
    for estimates in draw(channels, realisations, seed=seed):
        for group in groups(clusters, estimates.shape[-1], len(estimates)):
            _add(result, group, estimates, channels, uplink=uplink, known=known)
    result.uplink_bits /= realisations
    result.mean /= realisations
    result.leak /= realisations
    result.power /= realisations
    return result


def _add(
    result: Joint, group: Group, estimates: Complexes, channels: Channels, *, uplink: Floats, known: Bools
) -> None:
    count, size = group.points.shape
    blocks, _, phones, antennas = estimates.shape
    rows = np.arange(count)
    signals = group.heard(estimates).transpose(0, 1, 3, 2, 4).reshape(blocks, count, phones, size * antennas)
    combiners = joint_combiners(signals, channels, group, uplink * known[group.phones])
    gathered = (signals @ combiners.conj()[..., None])[..., 0]  # (R, G, K): v_k^H h_i as far as known
    local = combiners.reshape(blocks, count, size, antennas)
    error = channels.error[group.points]  # (G, m, K, N, N)
    # v^H (sum_i p_i C_i) v in each realisation, and tr(C_i sum v v^H) over all of them
    summed = np.einsum("gmknp,k->gmnp", error, uplink)
    missed = ((local.conj()[..., None, :] @ summed)[..., 0, :] * local).sum(axis=(2, 3)).real  # (R, G)
    spread = np.einsum("rgmn,rgmp->gmnp", local, local.conj())
    received = np.abs(gathered) ** 2
    own = received[:, rows, group.phones] * uplink[group.phones]
    noise = (np.abs(combiners) ** 2).sum(axis=2)
    sinr = own / ((received @ uplink) - own + missed + noise)
    result.uplink_bits[group.phones] += np.log2(1 + sinr).sum(axis=0)
    result.mean[group.phones] += gathered[:, rows, group.phones].sum(axis=0)
    result.leak[group.phones] += received.sum(axis=0)
    result.leak[group.phones] += np.einsum("gmknp,gmpn->gk", error, spread, optimize=True).real
    result.power[group.phones[:, None], group.points] += np.einsum("gmnn->gm", spread).real
