"""Power control that needs no optimiser: every rule looks only at a phone's neighbourhood.

Gains (K, L) and clusters (K, L) in, milliwatts out; Demir, Björnson and Sanguinetti, chapter 7.
"""

from __future__ import annotations

import numpy as np

from fewer.systems.cellfree.task.spectral.combining import partners
from fewer.systems.cellfree.task.spectral.radio import Bools, Floats, Radio

__all__ = ["joint_downlink_power", "local_downlink_power", "uplink_power"]


def uplink_power(gain: Floats, clusters: Bools, radio: Radio) -> Floats:
    """What each phone sends (K,): all it can, or less the better its cluster hears it than its neighbours' theirs.

    Fractional: p_k = p_max min_i s_i^v / s_k^v with s the summed gain of a cluster, i over phones sharing a server.
    """
    full = np.full(len(gain), radio.uplink_mw)
    if radio.uplink_control == "full":
        return full
    strength = np.where(clusters, gain, 0.0).sum(axis=1) ** radio.uplink_exponent
    weakest = np.where(partners(clusters), strength, np.inf).min(axis=1)
    return np.asarray(full * weakest / strength)


def local_downlink_power(gain: Floats, clusters: Bools, radio: Radio) -> Floats:
    """What each access point sends to each phone (K, L): equal shares, or shares by the root of the gain."""
    share = np.where(clusters, np.sqrt(gain) if radio.downlink_control == "fractional" else 1.0, 0.0)
    total = share.sum(axis=0)
    return radio.downlink_mw * share / np.where(total > 0, total, 1.0)


def joint_downlink_power(gain: Floats, clusters: Bools, shares: Floats, radio: Radio) -> Floats:
    """What all access points together send to each phone (K,), within the limit of every one of them.

    `shares` (K, L) is the mean power of a phone's unit-power precoder at each access point. Fractional, eq. (7.43):
    rho_k = rho_max s_k^v w_k^-q / max_l sum_{i served by l} s_i^v w_i^(1-q), with w_k = max_l shares[k, l].
    """
    if radio.downlink_control == "equal":
        weight = np.ones(len(gain))
        burden = weight
    else:
        strength = np.where(clusters, gain, 0.0).sum(axis=1) ** radio.downlink_exponent
        largest = np.where(clusters, shares, 0.0).max(axis=1)
        weight = strength * largest**-radio.downlink_sharing
        burden = weight * largest
    load = burden @ clusters  # (L,)
    return np.asarray(radio.downlink_mw * weight / np.where(clusters, load, 0.0).max(axis=1))
