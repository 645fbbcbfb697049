"""From what a file measures to rain in mm/h, and the Z-R relation between echoes and rain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError

__all__ = ["FASTEST", "RAIN", "as_rates", "kind_of", "reflectivity_to_rate"]

RAIN = ("rain_rate", "mm h-1")  # name and units of a band of rain
FASTEST = 2000.0  # mm/h, more than any rain on record; what is beyond is no measurement
_FACTOR, _POWER = 200.0, 1.6  # Z = 200 R^1.6, Marshall and Palmer
_LARGEST_DBZ = 80.0

_PER_HOUR = {
    "mm/h": 1.0, "mm h-1": 1.0, "mm/hr": 1.0, "mm hr-1": 1.0, "mm hour-1": 1.0, "mm/hour": 1.0, "kg m-2 h-1": 1.0,
    "mm s-1": 3600.0, "mm/s": 3600.0, "kg m-2 s-1": 3600.0, "kg/m2/s": 3600.0, "m s-1": 3.6e6, "m/s": 3.6e6,
}  # fmt: skip
_AMOUNTS = {"mm": 1.0, "kg m-2": 1.0, "kg/m2": 1.0, "kg/m^2": 1.0, "m": 1000.0, "cm": 10.0}
_ECHOES = ("dbz", "dbz1")
_RAINY = ("rain", "precip", "rate", "acrr", "rr", "qpe", "crr")


def reflectivity_to_rate(dbz: NDArray[Any]) -> NDArray[Any]:
    """mm/h from decibels."""
    rate: NDArray[Any] = (10.0 ** (np.minimum(dbz, _LARGEST_DBZ) / 10.0) / _FACTOR) ** (1.0 / _POWER)
    return rate


def kind_of(name: str, units: str, standard_name: str = "") -> str:
    """`rate`, `amount` or `echo` if that is what a variable says it holds; empty: no rain."""
    written = units.strip()
    if written.lower() in _ECHOES or standard_name.endswith("equivalent_reflectivity_factor"):
        return "echo"
    if written not in _PER_HOUR and written not in _AMOUNTS:
        return ""
    said = f"{name} {standard_name}".lower()
    if not any(word in said for word in _RAINY):
        return ""
    return "rate" if written in _PER_HOUR else "amount"


def as_rates(values: NDArray[Any], units: str, *, hours: float | None, what: str) -> NDArray[np.float32]:
    """mm/h; NaN stays NaN, small negative rates of bias corrections become 0."""
    written = units.strip()
    with np.errstate(over="ignore", invalid="ignore"):
        if written.lower() in _ECHOES:
            rates = reflectivity_to_rate(values.astype(np.float64))
        elif written in _PER_HOUR:
            rates = values * _PER_HOUR[written]
        elif written in _AMOUNTS:
            if hours is None or not hours > 0:
                raise UserError(f"{what} in {written} over an unknown time", "time bounds or a start time")
            rates = values * (_AMOUNTS[written] / hours)
        else:
            known = ", ".join(sorted({*_PER_HOUR, *_AMOUNTS, "dBZ"}))
            raise UserError(f"{what} in units {units!r}", f"one of {known}")
        found: NDArray[np.float32] = np.maximum(rates, 0.0).astype(np.float32)
    found[~np.isfinite(found) | (found > FASTEST)] = np.nan
    return found
