"""KNMI's HDF5: `image1` with a calibration formula, `geographic` with a projection in kilometres."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.own.grid import Grid, from_corner, in_metres
from fewer.systems.nowcast.task.files.own.images import Channel, Frame
from fewer.systems.nowcast.task.files.own.odim import plain
from fewer.systems.nowcast.task.files.own.quantities import RAIN, as_rates

__all__ = ["frames"]

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_FORMULA = re.compile(rf"GEO=([-+]?{_NUMBER})\*PV(?:\+?([-+]{_NUMBER}))?")  # echoes have `+ -32.000000`


def frames(file: Any, path: Path) -> list[Frame]:
    """Of an open file, its one image."""
    try:
        image, overview = file["image1"], _attributes(file["overview"])
        calibration = _attributes(image["calibration"])
        raw = np.asarray(image["image_data"][()])
        start, end = (_time(str(overview[f"product_datetime_{which}"])) for which in ("start", "end"))
        quantity = str(_attributes(image)["image_geo_parameter"])
        grid = _grid(file, raw.shape)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"{path.name} ({str(error).splitlines()[0]})", "KNMI's image1, overview and geographic"
        ) from None
    if raw.ndim != 2 or raw.size == 0 or raw.dtype.kind not in "fiu" or not min(grid.pixel) > 0:
        raise UserError(f"{path.name}: {raw.shape} of {raw.dtype}, pixels {grid.pixel}", "numbers (y, x) of some size")
    gain, offset = _calibration(path, str(calibration.get("calibration_formulas", "")))
    values = gain * raw.astype(np.float64) + offset
    echoes = "REFLECTIVITY" in quantity.upper()
    missing, outside = (calibration.get(f"calibration_{why}") for why in ("missing_data", "out_of_image"))
    # echoes have one code, 0, for what is missing and for no echo at all: nearly all of the map on a fair day
    silent = raw == 0 if echoes and missing == 0 and outside != 0 else np.zeros(raw.shape, np.bool_)
    for code in (missing, outside):
        if code is not None:
            values[(raw == code) & ~silent] = np.nan
    hours = float((end - start) / np.timedelta64(1, "s")) / 3600.0
    rates = as_rates(values, "dBZ" if echoes else "mm", hours=hours, what=path.name)
    rates[silent] = 0.0
    return [Frame(rates[None], end, (Channel(*RAIN),), grid, path.name)]


def _attributes(group: Any) -> dict[str, Any]:
    return {key: plain(value) for key, value in group.attrs.items()}


def _time(text: str) -> np.datetime64:
    """`26-AUG-2010;00:05:00.000`."""
    try:
        date, clock = text.strip("\0 ").split(";")
        day, month, year = date.split("-")
        return np.datetime64(f"{year}-{_MONTHS.index(month.upper()) + 1:02d}-{day}T{clock[:8]}", "s")
    except ValueError:
        raise ValueError(f"time {text[:40]!r}") from None


def _calibration(path: Path, formula: str) -> tuple[float, float]:
    found = _FORMULA.fullmatch(re.sub(r"[\s\0]", "", formula))
    if not found or float(found[1]) == 0:
        raise UserError(f"{path.name} with calibration {formula!r}", "GEO=a*PV+b, a not 0")
    return float(found[1]), float(found[2] or 0)


def _grid(file: Any, shape: tuple[int, ...]) -> Grid:
    """Offsets count pixels from the pole; both are in kilometres, as the projection is."""
    place, mapping = _attributes(file["geographic"]), _attributes(file["geographic/map_projection"])
    width, height = (abs(float(place[f"geo_pixel_size_{axis}"])) for axis in "xy")
    left = float(place["geo_column_offset"]) * width
    top = -float(place["geo_row_offset"]) * height
    # the axes of PROJ's own string are those of the offsets, but only a string that says so is read in kilometres
    said = str(mapping["projection_proj4_params"])
    metres = re.sub(r"\+([ab])=([\d.]+)", lambda one: f"+{one[1]}={1000 * float(one[2]):.3f}", said)
    projection, _ = in_metres(metres if float(_parameter(said, "a")) < 1e5 else said)
    pixel = 1000 * width, 1000 * height
    return from_corner(projection, (1000 * left, 1000 * top), pixel=pixel, shape=(shape[0], shape[1]))


def _parameter(projection: str, name: str) -> str:
    found = re.search(rf"\+{name}=([\d.]+)", projection)
    return found[1] if found else "6378137"
