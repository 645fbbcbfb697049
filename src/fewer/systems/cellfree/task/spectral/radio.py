"""Settings of the radio, and what every spectral function demands of its arrays.

Shapes everywhere: K phones, L access points of N antennas each. Powers are in milliwatts and gains are divided by the
noise power in milliwatts, so the noise has unit power in every formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewer.core.errors import UserError

__all__ = ["Bools", "Complexes", "Floats", "Integers", "Radio", "checked_clusters", "checked_gain", "checked_pilots"]

Floats = NDArray[np.float64]
Complexes = NDArray[np.complexfloating[Any, Any]]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

_CHOICES = {
    "uplink_control": ("full", "fractional"),
    "downlink_control": ("equal", "fractional"),
    "weighting": ("n-opt", "opt", "none"),
}
# name: (smallest, largest)
_RANGES = {
    "antennas": (1, 1024),
    "pilot_symbols": (1, 10**6),
    "coherence_symbols": (2, 10**9),
    "bandwidth_hz": (1.0, 1e12),
    "noise_figure_db": (-50.0, 50.0),
    "uplink_mw": (1e-9, 1e9),
    "downlink_mw": (1e-9, 1e9),
    "uplink_exponent": (-1.0, 1.0),
    "downlink_exponent": (-1.0, 1.0),
    "downlink_sharing": (0.0, 1.0),
}
_BOLTZMANN_290_KELVIN_DBM_PER_HZ = -174.0
_WEAKEST_DB, _STRONGEST_DB = -400.0, 0.0  # no link gains power; beyond, rounding passes for signal
_GAIN_CURE = "give received over sent power, about -150 to -50: 35.3 dB are lost at 1 m, not at 1 km"


@dataclass(frozen=True)
class Radio:
    """The running example of Demir, Björnson and Sanguinetti: 20 MHz, 100 mW phones, 200 mW access points."""

    antennas: int = 4  # per access point
    pilot_symbols: int = 10  # also the number of orthogonal pilots
    coherence_symbols: int = 200  # channel uses over which a channel stands still; what pilots leave carries data
    bandwidth_hz: float = 20e6
    noise_figure_db: float = 7.0  # of phones and access points alike
    uplink_mw: float = 100.0  # most that a phone sends; pilots are always sent with it
    downlink_mw: float = 200.0  # most that an access point sends
    uplink_control: str = "full"  # full or fractional
    uplink_exponent: float = 0.5  # fractional: 0 is full power, 1 evens out what neighbours are heard with
    downlink_control: str = "fractional"  # equal or fractional
    downlink_exponent: float = -0.5  # p-mmse and mmse, fractional: negative favours weak phones
    downlink_sharing: float = 0.5  # p-mmse and mmse, fractional: 1 divides by a phone's share of its busiest sender
    weighting: str = "n-opt"  # mr and lp-mmse in the uplink: n-opt (scalable), opt (all interferers) or none

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UserError(f"radio {name} {getattr(self, name)!r}", f"one of {', '.join(choices)}")
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not math.isfinite(value) or not least <= value <= most:
                raise UserError(f"radio {name} {value}", f"a number from {least:g} to {most:g}")
        for name in ("antennas", "pilot_symbols", "coherence_symbols"):
            if not isinstance(getattr(self, name), int):
                raise UserError(f"radio {name} {getattr(self, name)}", "a whole number")
        if self.pilot_symbols >= self.coherence_symbols:
            raise UserError(
                f"{self.pilot_symbols} pilot symbols in blocks of {self.coherence_symbols}",
                "fewer pilots than symbols",
                "nothing would be left for data: lower pilot_symbols or raise coherence_symbols",
            )

    @property
    def noise_dbm(self) -> float:
        """Thermal noise over the band plus the receiver's noise figure."""
        return _BOLTZMANN_290_KELVIN_DBM_PER_HZ + 10 * math.log10(self.bandwidth_hz) + self.noise_figure_db

    @property
    def data_share(self) -> float:
        """The pre-log factor: the share of a coherence block that carries data."""
        return 1 - self.pilot_symbols / self.coherence_symbols

    def gain_over_noise(self, gain_db: Floats) -> Floats:
        """Channel gains as received milliwatts per sent milliwatt and milliwatt of noise."""
        for extreme in (gain_db.min(), gain_db.max()):
            if not _WEAKEST_DB <= extreme <= _STRONGEST_DB:
                expected = f"{_WEAKEST_DB:g} to {_STRONGEST_DB:g} dB"
                raise UserError(f"a gain of {extreme:g} dB", expected, _GAIN_CURE)
        return np.power(10.0, (gain_db - self.noise_dbm) / 10)


def checked_gain(gain_db: ArrayLike) -> Floats:
    """The gains as a (phones, access points) array of finite decibels."""
    gain = np.asarray(gain_db, dtype=np.float64)
    if gain.ndim != 2 or 0 in gain.shape:
        raise UserError(f"gains of shape {gain.shape}", "(phones, access points), at least one of each")
    wrong = np.argwhere(~np.isfinite(gain))
    if len(wrong):
        phone, point = wrong[0]
        raise UserError(
            f"{gain[phone, point]} as the gain of phone {phone} to access point {point}",
            "finite decibels",
            "give unmeasured links their true or a very low gain, such as -300",
        )
    return gain


def checked_clusters(clusters: ArrayLike, shape: tuple[int, ...], name: str = "clusters") -> Bools:
    """The clusters as a boolean (phones, access points) array in which every phone is served."""
    served = np.asarray(clusters)
    if served.shape != shape:
        raise UserError(f"{name} of shape {served.shape}", f"{shape}, the shape of the gains")
    if served.dtype != np.bool_:
        if not np.isin(served, (0, 1)).all():
            raise UserError(f"{name} of type {served.dtype}", "booleans", "True where an access point serves a phone")
        served = served.astype(np.bool_)
    empty = np.flatnonzero(~served.any(axis=1))
    if len(empty):
        raise UserError(
            f"{name} with no access point for phone {empty[0]}" + (f" and {len(empty) - 1} more" * (len(empty) > 1)),
            "at least one access point a phone",
            "add the phone's master",
        )
    return served


def checked_pilots(pilots: ArrayLike, phones: int, pilot_symbols: int) -> Integers:
    """One pilot index per phone."""
    given = np.asarray(pilots)
    if given.shape != (phones,) or not np.issubdtype(given.dtype, np.integer):
        raise UserError(f"pilots of shape {given.shape} and type {given.dtype}", f"{phones} whole numbers, one a phone")
    if given.min() < 0 or given.max() >= pilot_symbols:
        raise UserError(f"pilots from {given.min()} to {given.max()}", f"0 to {pilot_symbols - 1}")
    return given.astype(np.int64)
