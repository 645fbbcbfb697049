"""Spectral efficiency of user-centric cell-free massive MIMO: what choosing access points is for.

After Demir, Björnson and Sanguinetti, Foundations of User-Centric Cell-Free Massive MIMO (2021). Plain arrays in:
gains (K, L) in decibels and clusters (K, L) of booleans for K phones and L access points.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.spectral.channels import Channels, arrival_angles, channels, local_scattering
from fewer.systems.cellfree.task.spectral.joint import joint_moments
from fewer.systems.cellfree.task.spectral.local import Sent, closed_moments, drawn_moments, uplink_sinr
from fewer.systems.cellfree.task.spectral.pilots import (
    assign_pilots,
    cooperation_clusters,
    limit_load,
    strongest_clusters,
)
from fewer.systems.cellfree.task.spectral.power import joint_downlink_power, local_downlink_power, uplink_power
from fewer.systems.cellfree.task.spectral.radio import (
    Bools,
    Floats,
    Integers,
    Radio,
    checked_clusters,
    checked_gain,
    checked_pilots,
)

__all__ = [
    "DEFAULT",
    "SCHEMES",
    "Efficiency",
    "Radio",
    "Setup",
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
class Setup:
    """How signals are processed, and how finely that is simulated."""

    scheme: str = "p-mmse"  # mr and lp-mmse combine inside access points, p-mmse and mmse across a phone's cluster
    radio: Radio = field(default_factory=Radio)
    realisations: int = 100  # draws of the small-scale fading
    seed: int = 0
    closed_form: bool = True  # mr only: exact instead of drawn
    most_phones: int = 0  # served by one access point, such as the number of pilots; 0: no limit

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise UserError(f"scheme {self.scheme!r}", f"one of {', '.join(SCHEMES)}")
        for name, least in (("realisations", 1), ("seed", 0), ("most_phones", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise UserError(f"setup {name} {value}", f"a whole number of at least {least}")


DEFAULT = Setup()


@dataclass(frozen=True)
class Efficiency:
    """Spectral efficiencies in bit/s/Hz, as if all data symbols went up, and as if all went down."""

    uplink: Floats  # (K,)
    downlink: Floats  # (K,)
    uplink_mw: Floats  # (K,) sent by each phone
    downlink_mw: Floats  # (K, L) mean power that each access point sends to each phone
    pilots: Integers  # (K,)
    clusters: Bools  # (K, L) who served, after the limit on phones per access point


def spectral_efficiency(
    gain_db: ArrayLike,
    clusters: ArrayLike,
    *,
    setup: Setup = DEFAULT,
    pilots: ArrayLike | None = None,
    correlation: ArrayLike | None = None,
) -> Efficiency:
    """What every phone gets with these servers.

    `pilots` (K,) defaults to Algorithm 4.1, `correlation` (K, L, N, N) to independent antennas; see
    `local_scattering`. Work for combiners grows with the links served, work for rates with phones times links.
    """
    radio = setup.radio
    decibels = checked_gain(gain_db)
    served = checked_clusters(clusters, decibels.shape)
    if setup.most_phones:
        served = limit_load(decibels, served, setup.most_phones)
    if pilots is None:
        pilots = assign_pilots(decibels, radio.pilot_symbols)
    pilot = checked_pilots(pilots, len(decibels), radio.pilot_symbols)
    gain = radio.gain_over_noise(decibels)
    energy = radio.uplink_mw * radio.pilot_symbols
    statistics = channels(gain, pilot, pilot_energy=energy, antennas=radio.antennas, correlation=correlation)
    rates = _local if setup.scheme in ("mr", "lp-mmse") else _joint
    up_bits, down_bits, up_mw, down_mw = rates(gain, served, statistics, setup)
    return Efficiency(radio.data_share * up_bits, radio.data_share * down_bits, up_mw, down_mw, pilot, served)


_Rates = tuple[Floats, Floats, Floats, Floats]  # bits up, bits down, mW up, mW down


def _local(gain: Floats, served: Bools, statistics: Channels, setup: Setup) -> _Rates:
    radio = setup.radio
    sent = Sent(served, uplink_power(gain, served, radio), local_downlink_power(gain, served, radio))
    if setup.scheme == "mr" and setup.closed_form:
        moments = closed_moments(statistics, sent)
    else:
        moments = drawn_moments(statistics, sent, setup.scheme, realisations=setup.realisations, seed=setup.seed)
    bits, signal, leaked = np.zeros(len(gain)), np.zeros(len(gain)), np.zeros(len(gain))
    for part in moments:
        phones = part.group.phones
        bits[phones] = np.log2(1 + uplink_sinr(part, sent.uplink, radio.weighting))
        amplitude = np.sqrt(np.take_along_axis(sent.downlink[phones], part.group.points, axis=1))
        signal[phones] = np.abs((amplitude * part.mean).sum(axis=1)) ** 2
        leaked += part.leak.sum(axis=0)
    return bits, _hardened(signal, leaked), sent.uplink, sent.downlink


def _joint(gain: Floats, served: Bools, statistics: Channels, setup: Setup) -> _Rates:
    up_mw = uplink_power(gain, served, setup.radio)
    found = joint_moments(statistics, served, up_mw, setup.scheme, realisations=setup.realisations, seed=setup.seed)
    total = found.power.sum(axis=1)
    shares = found.power / total[:, None]
    down_mw = joint_downlink_power(gain, served, shares, setup.radio)
    signal = down_mw / total * np.abs(found.mean) ** 2
    leaked = (down_mw / total) @ found.leak
    return found.uplink_bits, _hardened(signal, leaked), up_mw, down_mw[:, None] * shares


def _hardened(signal: Floats, leaked: Floats) -> Floats:
    """Bits by the hardening bound: a phone knows its mean channel alone, all else that reaches it is noise."""
    return np.asarray(np.log2(1 + signal / (leaked - signal + 1)))
