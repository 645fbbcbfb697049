"""OPERA's exchange format, ODIM HDF5: composites of rain rate, accumulation or reflectivity, and where they lie.

A file holds `what`, `where` and groups dataset1, dataset2, ..., each with data1, data2, ...; attributes may stand at
any of these levels and the innermost holds. A raw value is `nodata` (no radar), `undetect` (dry) or
gain * raw + offset of its quantity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.region_year import opened

__all__ = ["Composite", "Domain", "composites", "domain"]

_RATES, _SUMS, _ECHOES = ("RATE",), ("ACRR",), ("DBZH", "TH")
_FACTOR, _POWER = 200.0, 1.6  # Z = 200 R^1.6, Marshall and Palmer


class Composite(NamedTuple):
    """One picture."""

    rate: NDArray[np.float32]  # (y, x) in mm/h, NaN where no radar looked
    minute: int  # since 1970
    kilometres: float
    file: str


@dataclass(frozen=True)
class Domain:
    """Where the pixels are, as far as the file says: metres in the projection, from the upper left corner."""

    projection: str  # as PROJ writes it
    pixel_metres: tuple[float, float]  # x, y
    shape: tuple[int, int]  # rows, columns
    corners: dict[str, tuple[float, float]]  # UL, LL, ...: longitude and latitude in degrees


def composites(path: Path) -> list[Composite]:
    """Every picture of the best quantity a file has: rate before accumulation before reflectivity."""
    with opened(path) as file:
        found = list(_pictures(file))
        for quantities in (_RATES, _SUMS, _ECHOES):
            chosen = [(group, attributes) for group, attributes in found if attributes.get("quantity") in quantities]
            if chosen:
                return [_composite(path, group, attributes) for group, attributes in chosen]
    held = ", ".join(sorted({str(attributes.get("quantity", "?")) for _, attributes in found})) or "nothing"
    raise UserError(f"{path.name} with {held}", f"one of {', '.join(_RATES + _SUMS + _ECHOES)}", "is it ODIM HDF5?")


def domain(path: Path) -> Domain:
    """The grid of the file's first picture."""
    with opened(path) as file:
        for group, attributes in _pictures(file):
            scale = (float(attributes.get("xscale", 0.0)), float(attributes.get("yscale", 0.0)))
            corners = {
                name: (float(attributes[f"{name}_lon"]), float(attributes[f"{name}_lat"]))
                for name in ("UL", "UR", "LL", "LR")
                if f"{name}_lon" in attributes and f"{name}_lat" in attributes
            }
            shape = (int(group["data"].shape[0]), int(group["data"].shape[1]))
            return Domain(str(attributes.get("projdef", "")), scale, shape, corners)
    raise UserError(f"{path.name} without pictures", "ODIM HDF5 with dataset1/data1")


def _pictures(file: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Groups that hold `data`, each with the attributes of its level and of those above it."""
    for name in _numbered(file, "dataset"):
        for inner in _numbered(file[name], "data"):
            group = file[name][inner]
            if "data" not in group:
                continue
            attributes: dict[str, Any] = {}
            for level in (file, file[name], group):
                for part in ("what", "where", "how"):
                    if part in level:
                        attributes |= {key: _plain(value) for key, value in level[part].attrs.items()}
            yield group, attributes


def _numbered(group: Any, word: str) -> list[str]:
    names = [name for name in group if re.fullmatch(rf"{word}\d+", name)]
    return sorted(names, key=lambda name: int(name.removeprefix(word)))


def _plain(value: Any) -> Any:
    """Attributes come as bytes, strings, scalars or arrays of one."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(())[()]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _composite(path: Path, group: Any, attributes: dict[str, Any]) -> Composite:
    try:
        raw = np.asarray(group["data"][()]).astype(np.float64, casting="same_kind")
        quantity = str(attributes["quantity"])
        gain, offset = float(attributes.get("gain", 1.0)), float(attributes.get("offset", 0.0))
        value = gain * raw + offset
        nodata, undetect = float(attributes.get("nodata", np.nan)), float(attributes.get("undetect", np.nan))
        minute = _minute(attributes, "end") if quantity in _SUMS else _minute(attributes, "")
        kilometres = float(attributes.get("xscale", 0.0)) / 1000.0
        hours = (_minute(attributes, "end") - _minute(attributes, "start")) / 60.0 if quantity in _SUMS else 1.0
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} ({str(error).splitlines()[0]})", "ODIM attributes and numbers") from None
    if raw.ndim != 2 or raw.size == 0 or not kilometres > 0 or not hours > 0:
        raise UserError(f"{path.name}: {raw.shape}, {kilometres:g} km, {hours:g} h", "(y, x) with xscale and a period")
    if gain == 0 or not np.isfinite([gain, offset]).all():
        raise UserError(f"{path.name} with gain {gain:g} and offset {offset:g}", "numbers, the gain not 0")
    if "nodata" not in attributes and quantity not in _ECHOES and ((value < 0) & (raw != undetect)).any():
        raise UserError(f"{path.name} with {quantity} below 0 and no attribute nodata", "to be told what is missing")
    if quantity in _ECHOES:
        value = (10.0 ** (np.minimum(value, 80.0) / 10.0) / _FACTOR) ** (1.0 / _POWER)
    rate = np.maximum(value / hours, 0.0)
    rate[raw == undetect] = 0.0
    rate[(raw == nodata) | ~np.isfinite(raw)] = np.nan
    with np.errstate(over="ignore"):  # beyond all measure: infinite
        return Composite(rate.astype(np.float32), minute, kilometres, path.name)


def _minute(attributes: dict[str, Any], prefix: str) -> int:
    """The nominal time, or the period's start or end; seconds are dropped."""
    date, time = (str(attributes[key]) for key in (f"{prefix}date", f"{prefix}time"))
    text = f"{date[:4]}-{date[4:6]}-{date[6:8]}T{time[:2]}:{time[2:4]}"
    return int(np.datetime64(text, "m").astype(np.int64))
