"""OPERA's exchange format, ODIM HDF5: composites of rain rate, accumulation or reflectivity, and where they lie.

A file holds `what`, `where` and groups dataset1, dataset2, ..., each with data1, data2, ...; attributes may stand at
any of these levels and the innermost holds. A raw value is `nodata` (no radar), `undetect` (dry) or
gain * raw + offset of its quantity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.own.grid import Grid, easting_northing, from_corner, in_metres, unplaced
from fewer.systems.nowcast.task.files.own.images import Channel, Frame
from fewer.systems.nowcast.task.files.own.quantities import RAIN, as_rates

__all__ = ["frames", "plain"]

_RATES, _SUMS, _ECHOES = ("RATE",), ("ACRR",), ("DBZH", "TH")


def frames(file: Any, path: Path) -> list[Frame]:
    """Every picture of the best quantity that an open file has: rate before accumulation before reflectivity."""
    found = list(_pictures(file))
    for quantities in (_RATES, _SUMS, _ECHOES):
        chosen = [(group, attributes) for group, attributes in found if attributes.get("quantity") in quantities]
        if chosen:
            return [_frame(path, group, attributes) for group, attributes in chosen]
    held = ", ".join(sorted({str(attributes.get("quantity", "?")) for _, attributes in found})) or "nothing"
    raise UserError(f"{path.name} with {held}", f"one of {', '.join(_RATES + _SUMS + _ECHOES)}", "is it ODIM HDF5?")


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
                        attributes |= {key: plain(value) for key, value in level[part].attrs.items()}
            yield group, attributes


def _numbered(group: Any, word: str) -> list[str]:
    names = [name for name in group if re.fullmatch(rf"{word}\d+", name)]
    return sorted(names, key=lambda name: int(name.removeprefix(word)))


def plain(value: Any) -> Any:
    """Attributes come as bytes, strings, scalars or arrays of one."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(())[()]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _frame(path: Path, group: Any, attributes: dict[str, Any]) -> Frame:
    try:
        raw = np.asarray(group["data"][()]).astype(np.float64, casting="same_kind")
        quantity = str(attributes["quantity"])
        gain, offset = float(attributes.get("gain", 1.0)), float(attributes.get("offset", 0.0))
        value = gain * raw + offset
        nodata, undetect = float(attributes.get("nodata", np.nan)), float(attributes.get("undetect", np.nan))
        time = _time(attributes, "end") if quantity in _SUMS else _time(attributes, "")
        scale = float(attributes.get("xscale", 0.0)), float(attributes.get("yscale", attributes.get("xscale", 0.0)))
        hours = float((time - _time(attributes, "start")) / np.timedelta64(1, "h")) if quantity in _SUMS else 1.0
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} ({str(error).splitlines()[0]})", "ODIM attributes and numbers") from None
    if raw.ndim != 2 or raw.size == 0 or not min(scale) > 0 or not hours > 0:
        raise UserError(
            f"{path.name}: {raw.shape}, {scale[0] / 1000:g} km, {hours:g} h", "(y, x) with xscale and a period"
        )
    if gain == 0 or not np.isfinite([gain, offset]).all():
        raise UserError(f"{path.name} with gain {gain:g} and offset {offset:g}", "numbers, the gain not 0")
    if "nodata" not in attributes and quantity not in _ECHOES and ((value < 0) & (raw != undetect)).any():
        raise UserError(f"{path.name} with {quantity} below 0 and no attribute nodata", "to be told what is missing")
    value[(raw == nodata) | ~np.isfinite(raw)] = np.nan
    rate = as_rates(value, "dBZ" if quantity in _ECHOES else "mm", hours=hours, what=path.name)
    rate[raw == undetect] = 0.0
    grid = _grid(attributes, scale, (raw.shape[0], raw.shape[1]))
    return Frame(rate[None], time, (Channel(*RAIN),), grid, path.name)


def _grid(attributes: dict[str, Any], scale: tuple[float, float], shape: tuple[int, int]) -> Grid:
    """From the upper left corner, in the projection where the file says it, else in degrees."""
    projection = str(attributes.get("projdef", "")).strip()
    if not projection:
        return unplaced(*shape, float(np.sqrt(scale[0] * scale[1])) / 1000)
    projection, unit = in_metres(projection)
    if "UL_x" in attributes and "UL_y" in attributes:
        corner = unit * float(attributes["UL_x"]), unit * float(attributes["UL_y"])
    elif "UL_lon" in attributes and "UL_lat" in attributes:
        corner = easting_northing(projection, float(attributes["UL_lon"]), float(attributes["UL_lat"]))
    else:
        return unplaced(*shape, float(np.sqrt(scale[0] * scale[1])) / 1000)
    return from_corner(projection, corner, pixel=scale, shape=shape)


def _time(attributes: dict[str, Any], prefix: str) -> np.datetime64:
    """The nominal time, or the period's start or end."""
    date, time = (str(attributes[key]) for key in (f"{prefix}date", f"{prefix}time"))
    seconds = time[4:6] or "00"
    return np.datetime64(f"{date[:4]}-{date[4:6]}-{date[6:8]}T{time[:2]}:{time[2:4]}:{seconds}", "s")
