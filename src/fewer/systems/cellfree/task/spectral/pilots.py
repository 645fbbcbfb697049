"""Who sends which pilot, and who serves whom: dynamic cooperation clustering.

Demir, Björnson and Sanguinetti, Foundations of User-Centric Cell-Free Massive MIMO, Algorithm 4.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.spectral.radio import Bools, Integers, checked_clusters, checked_gain, checked_pilots

__all__ = ["assign_pilots", "cooperation_clusters", "limit_load", "strongest_clusters"]


def assign_pilots(gain_db: ArrayLike, pilot_symbols: int) -> Integers:
    """A pilot for every phone (K,), in their order: the one its strongest access point hears least."""
    gain = checked_gain(gain_db)
    if pilot_symbols < 1:
        raise UserError(f"a pilot length of {pilot_symbols}", "at least 1")
    phones, points = gain.shape
    power = np.power(10.0, (gain - gain.max()) / 10)
    heard = np.zeros((pilot_symbols, points))  # what each access point hears on each pilot so far
    pilots = np.empty(phones, dtype=np.int64)
    for phone, master in enumerate(gain.argmax(axis=1)):
        # unused pilots are heard with 0 and come first, so the first phones get orthogonal ones
        pilots[phone] = heard[:, master].argmin()
        heard[pilots[phone]] += power[phone]
    return pilots


def cooperation_clusters(gain_db: ArrayLike, pilots: ArrayLike, *, threshold_db: float = np.inf) -> Bools:
    """The clusters (K, L) of Algorithm 4.1: each access point serves, per pilot, the phone it hears best.

    A phone's strongest access point always serves it, in place of a better heard phone on that pilot. Others serve
    only phones whose gain is at most `threshold_db` below their strongest one.
    """
    gain = checked_gain(gain_db)
    if not threshold_db >= 0:
        raise UserError(f"a threshold of {threshold_db} dB", "0 or more")
    phones, points = gain.shape
    symbols = int(np.max(pilots)) + 1 if np.size(pilots) else 1
    pilot = checked_pilots(pilots, phones, symbols)
    clusters = np.zeros(gain.shape, dtype=np.bool_)
    clusters[np.arange(phones), gain.argmax(axis=1)] = True
    near = gain >= gain.max(axis=1, keepdims=True) - threshold_db
    for index in range(symbols):
        group = np.flatnonzero(pilot == index)
        if len(group) == 0:
            continue
        best = group[gain[group].argmax(axis=0)]  # (L,)
        free = ~clusters[group].any(axis=0)
        point = np.flatnonzero(free & near[best, np.arange(points)])
        clusters[best[point], point] = True
    return clusters


def strongest_clusters(gain_db: ArrayLike, sizes: ArrayLike) -> Bools:
    """For each phone as many of its strongest access points as `sizes` (K,) says."""
    gain = checked_gain(gain_db)
    count = np.asarray(sizes)
    if count.shape != gain.shape[:1] or not np.issubdtype(count.dtype, np.integer):
        raise UserError(f"sizes of shape {count.shape} and type {count.dtype}", f"{len(gain)} whole numbers")
    if count.min() < 1 or count.max() > gain.shape[1]:
        raise UserError(f"cluster sizes from {count.min()} to {count.max()}", f"1 to {gain.shape[1]}")
    rank = np.argsort(np.argsort(-gain, axis=1, kind="stable"), axis=1)
    return np.asarray(rank < count[:, None])


def limit_load(gain_db: ArrayLike, clusters: ArrayLike, most: int) -> Bools:
    """The clusters with at most `most` phones per access point, such as one per pilot.

    First every phone takes a seat at the strongest of its servers with room, or of all access points where its
    servers are full, so that nobody is left out; what room remains goes to the links with the best gains.
    """
    gain = checked_gain(gain_db)
    served = checked_clusters(clusters, gain.shape)
    phones, points = gain.shape
    if most < 1 or most * points < phones:
        raise UserError(
            f"{most} phones per access point for {phones} phones and {points} access points",
            f"at least {max(1, -(-phones // points))}",
        )
    bonus = 1 + gain.max() - gain.min()  # puts every server before every other access point
    wish = gain + bonus * served
    seats = np.zeros(gain.shape, dtype=np.bool_)
    for phone in np.argsort(-wish.max(axis=1), kind="stable"):
        room = seats.sum(axis=0) < most
        seats[phone, np.where(room, wish[phone], -np.inf).argmax()] = True
    claim = np.where(served | seats, gain + bonus * seats, -np.inf)
    rank = np.argsort(np.argsort(-claim, axis=0, kind="stable"), axis=0)
    return np.asarray((served | seats) & (rank < most))
