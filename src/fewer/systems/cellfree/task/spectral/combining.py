"""Receive combiners, which are also the transmit precoders: MR, LP-MMSE inside access points, P-MMSE across them.

Phones are worked in groups of equal cluster size m, so that a cluster is a row of indices and every matrix has only
the antennas that serve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewer.systems.cellfree.task.spectral.channels import Channels
from fewer.systems.cellfree.task.spectral.radio import Bools, Complexes, Floats, Integers

__all__ = ["Group", "groups", "joint_combiners", "local_combiners", "partners"]

_GATHERED_AT_ONCE = 6_000_000  # complex numbers that one group may gather


@dataclass(frozen=True)
class Group:
    """Phones (G,) with clusters of one size, and those clusters (G, m)."""

    phones: Integers
    points: Integers

    def heard(self, estimates: Complexes) -> Complexes:
        """The estimates of all phones at the servers of each: (R, L, K, N) to (R, G, m, K, N)."""
        return estimates[:, self.points]


def groups(clusters: Bools, antennas: int, realisations: int) -> list[Group]:
    """All phones, by cluster size, in groups whose gathered estimates fit in memory."""
    sizes = clusters.sum(axis=1)
    found = []
    for size in np.unique(sizes):
        phones = np.flatnonzero(sizes == size)
        points = np.nonzero(clusters[phones])[1].reshape(len(phones), size)
        # covariances are gathered too: as many numbers as that many realisations
        gathered = max(realisations, antennas) * antennas * int(size) * len(clusters)
        most = max(1, _GATHERED_AT_ONCE // gathered)
        for begin in range(0, len(phones), most):
            part = slice(begin, begin + most)
            found.append(Group(phones[part], points[part]))
    return found


def partners(clusters: Bools) -> Bools:
    """Which phones (K, K) share a server: all that a scalable scheme takes notice of."""
    count = clusters.astype(np.float64)
    return np.asarray(count @ count.T > 0)


def local_combiners(estimates: Complexes, channels: Channels, clusters: Bools, power: Floats, scheme: str) -> Complexes:
    """MR or LP-MMSE combiners (R, L, K, N), each access point with its own estimates alone."""
    if scheme == "mr":
        return estimates
    weight = clusters.T * power  # (L, K): an access point knows the phones it serves
    fixed = np.einsum("lk,lknm->lnm", weight, channels.error) + np.eye(estimates.shape[-1])
    rows = estimates * weight[..., None]
    received = rows.swapaxes(-1, -2) @ estimates.conj() + fixed
    return np.linalg.solve(received, estimates.swapaxes(-1, -2)).swapaxes(-1, -2)


def joint_combiners(signals: Complexes, channels: Channels, group: Group, weight: Floats) -> Complexes:
    """MMSE combiners (R, G, m N) that null the phones of `weight` (G, K): their power, 0 for those left out.

    `signals` (R, G, K, m N) are the estimates of all phones at all antennas of a cluster. v = (W + S S^H)^-1 s_k with
    W the covariance of errors and noise, block-diagonal and at least the identity. The smaller of two equal systems
    is solved: m N unknowns, or by the matrix inversion lemma one per phone.
    """
    antennas = channels.error.shape[-1]
    blocks = np.einsum("gk,gmknp->gmnp", weight, channels.error[group.points], optimize=True) + np.eye(antennas)
    if signals.shape[2] < signals.shape[3]:
        return _by_phones(signals, blocks, group, weight)
    return _by_antennas(signals, blocks, group, weight)


def _by_antennas(signals: Complexes, blocks: Complexes, group: Group, weight: Floats) -> Complexes:
    count, size, antennas, _ = blocks.shape
    fixed = np.zeros((count, size, antennas, size, antennas), dtype=np.complex128)
    diagonal = np.arange(size)
    fixed[:, diagonal, :, diagonal] = blocks.swapaxes(0, 1)
    received = (signals * weight[..., None]).swapaxes(-1, -2) @ signals.conj()
    received += fixed.reshape(count, size * antennas, size * antennas)
    own = signals[:, np.arange(count), group.phones]
    return np.asarray(np.linalg.solve(received, own[..., None])[..., 0])


def _by_phones(signals: Complexes, blocks: Complexes, group: Group, weight: Floats) -> Complexes:
    count, size, antennas, _ = blocks.shape
    phones = weight.shape[1]
    scaled = signals * np.sqrt(weight)[..., None]
    local = scaled.reshape(-1, count, phones, size, antennas).swapaxes(2, 3)
    # rows are transposed vectors: s^T W^-T
    whitened = (local @ np.linalg.inv(blocks).swapaxes(-1, -2)).swapaxes(2, 3).reshape(signals.shape)
    inner = scaled.conj() @ whitened.swapaxes(-1, -2) + np.eye(phones)
    unit = np.eye(phones)[group.phones] / np.sqrt(weight[np.arange(count), group.phones])[:, None]
    mixing = np.linalg.solve(inner, np.broadcast_to(unit[..., None], (*inner.shape[:-1], 1)))
    return np.asarray((mixing.swapaxes(-1, -2) @ whitened)[..., 0, :])
