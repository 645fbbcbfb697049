"""Spectral efficiency of user-centric cell-free massive MIMO: what choosing access points is for.

After Demir, Björnson and Sanguinetti, Foundations of User-Centric Cell-Free Massive MIMO (2021). Plain arrays in:
gains (K, L) in decibels and clusters (K, L) of booleans for K phones and L access points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fewer.core.errors import UserError
from fewer.tasks.cellfree.spectral_channels import Channels, arrival_angles, channels, local_scattering
from fewer.tasks.cellfree.spectral_joint import joint_moments
from fewer.tasks.cellfree.spectral_local import Sent, closed_moments, drawn_moments, uplink_sinr
from fewer.tasks.cellfree.spectral_pilots import assign_pilots, cooperation_clusters, limit_load, strongest_clusters
from fewer.tasks.cellfree.spectral_power import joint_downlink_power, local_downlink_power, uplink_power
from fewer.tasks.cellfree.spectral_radio import (
    Bools,
    Floats,
    Integers,
    Radio,
    checked_clusters,
    checked_gain,
    checked_pilots,
)

__all__ = [
    "SCHEMES",
    "Draws",
    "Efficiency",
    "Radio",
    "arrival_angles",
    "assign_pilots",
    "cooperation_clusters",
    "limit_load",
    "local_scattering",
    "spectral_efficiency",
    "strongest_clusters",
]

SCHEMES = ("mr", "lp-mmse", "p-mmse", "mmse")


@dataclass(frozen=True)
class Draws:
    """Monte Carlo over small-scale fading."""

    realisations: int = 100  # channel draws
    seed: int = 0
    closed_form: bool = True  # mr only: exact instead of drawn


@dataclass(frozen=True)
class Efficiency:
    """Spectral efficiencies in bit/s/Hz, as if all data symbols went up, and as if all went down."""

    uplink: Floats  # (K,)
    downlink: Floats  # (K,)
    uplink_mw: Floats  # (K,) sent by each phone
    downlink_mw: Floats  # (K, L) mean power that each access point sends to each phone
    pilots: Integers  # (K,)


def spectral_efficiency(
    gain_db: ArrayLike,
    clusters: ArrayLike,
    *,
    scheme: str = "p-mmse",
    radio: Radio = Radio(),  # noqa: B008, frozen
    pilots: ArrayLike | None = None,
    correlation: ArrayLike | None = None,
    draws: Draws = Draws(),  # noqa: B008, frozen
) -> Efficiency:
    """What every phone gets with these servers.

    `pilots` (K,) defaults to Algorithm 4.1, `correlation` (K, L, N, N) to independent antennas; see
    `local_scattering`. mr and lp-mmse combine inside access points, p-mmse and mmse across a phone's cluster.
    Work for combiners grows with the links served, work for rates with phones times links.
    """
    if scheme not in SCHEMES:
        raise UserError(f"scheme {scheme!r}", f"one of {', '.join(SCHEMES)}")
    decibels = checked_gain(gain_db)
    served = checked_clusters(clusters, decibels.shape)
    if pilots is None:
        pilots = assign_pilots(decibels, radio.pilot_symbols)
    pilot = checked_pilots(pilots, len(decibels), radio.pilot_symbols)
    gain = radio.gain_over_noise(decibels)
    statistics = channels(
        gain,
        pilot,
        pilot_energy=radio.uplink_mw * radio.pilot_symbols,
        antennas=radio.antennas,
        correlation=correlation,
    )
    rates = _local if scheme in ("mr", "lp-mmse") else _joint
    uplink, downlink, up_mw, down_mw = rates(gain, served, statistics, scheme, radio=radio, draws=draws)
    share = radio.data_share
    return Efficiency(share * uplink, share * np.log2(1 + downlink), up_mw, down_mw, pilot)


_Rates = tuple[Floats, Floats, Floats, Floats]  # uplink bits, downlink SINR, uplink mW, downlink mW


def _local(gain: Floats, served: Bools, statistics: Channels, scheme: str, *, radio: Radio, draws: Draws) -> _Rates:
    sent = Sent(served, uplink_power(gain, served, radio), local_downlink_power(gain, served, radio))
    if scheme == "mr" and draws.closed_form:
        moments = closed_moments(statistics, sent)
    else:
        moments = drawn_moments(statistics, sent, scheme, realisations=draws.realisations, seed=draws.seed)
    uplink, signal, leaked = np.zeros(len(gain)), np.zeros(len(gain)), np.zeros(len(gain))
    for part in moments:
        phones = part.group.phones
        uplink[phones] = np.log2(1 + uplink_sinr(part, sent.uplink, radio.weighting))
        amplitude = np.sqrt(np.take_along_axis(sent.downlink[phones], part.group.points, axis=1))
        signal[phones] = np.abs((amplitude * part.mean).sum(axis=1)) ** 2
        leaked += part.leak.sum(axis=0)
    return uplink, signal / (leaked - signal + 1), sent.uplink, sent.downlink


def _joint(gain: Floats, served: Bools, statistics: Channels, scheme: str, *, radio: Radio, draws: Draws) -> _Rates:
    up_mw = uplink_power(gain, served, radio)
    found = joint_moments(statistics, served, up_mw, scheme, realisations=draws.realisations, seed=draws.seed)
    total = found.power.sum(axis=1)
    shares = found.power / total[:, None]
    down_mw = joint_downlink_power(gain, served, shares, radio)
    signal = down_mw / total * np.abs(found.mean) ** 2
    leaked = (down_mw / total) @ found.leak
    return found.uplink_bits, signal / (leaked - signal + 1), up_mw, down_mw[:, None] * shares
