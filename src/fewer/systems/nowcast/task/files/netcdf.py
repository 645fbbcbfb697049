"""Forecasts for everybody's tools: CF-NetCDF through xarray, of any domain size, on a map where its place is known."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra, UserError
from fewer.core.files.atomic import refusal
from fewer.systems.nowcast.task.files.odim import Domain

__all__ = ["QUANTITIES", "Forecast", "easting_northing", "write_netcdf"]

QUANTITIES: dict[str, tuple[str, dict[str, str]]] = {
    "probability": ("rain_probability", {"units": "1", "long_name": "probability of rain"}),
    "rain": ("rain", {"units": "1", "long_name": "rain forecast: 1 yes, 0 no"}),
    "rate": ("rain_rate", {"units": "mm h-1", "standard_name": "rainfall_rate", "long_name": "rain rate"}),
}
_SEMI_MAJOR, _ECCENTRICITY_SQUARED = 6378137.0, 0.0066943799901413165  # WGS84


@dataclass(frozen=True)
class Forecast:
    """Values on a regular grid, y from north to south; NaN where nothing is known."""

    values: NDArray[np.float32]  # (time, lead_time, y, x)
    times: NDArray[np.datetime64]  # (time,), of the last observation
    quantity: str = "probability"
    step_minutes: float = 15.0  # between lead times; the first is one step ahead
    kilometres: float = 2.0
    domain: Domain | None = None  # None: the place is not known, x and y count from the domain's centre

    def __post_init__(self) -> None:
        if self.quantity not in QUANTITIES:
            raise UserError(f"quantity {self.quantity!r}", f"one of {', '.join(QUANTITIES)}")
        if self.values.ndim != 4 or len(self.values) != len(self.times) or 0 in self.values.shape:
            raise UserError(f"values {self.values.shape} at {len(self.times)} times", "(time, lead_time, y, x)")
        if self.domain is not None and self.domain.shape != self.values.shape[2:]:
            raise UserError(f"values {self.values.shape[2:]} on a domain {self.domain.shape}", "one shape")


def write_netcdf(path: str | Path, forecast: Forecast, *, title: str = "Rain forecast") -> None:
    """One file, compressed, whole or absent."""
    try:
        import xarray
    except ImportError as error:
        raise MissingExtra("no xarray", "it installed, to write NetCDF", "pip install 'fewer[nowcast]'") from error
    name, attributes = QUANTITIES[forecast.quantity]
    dimensions = ("time", "lead_time", "y", "x")
    leads = (np.arange(forecast.values.shape[1]) + 1) * forecast.step_minutes
    start = forecast.times.astype("datetime64[ns]")
    y, x, mapping = _grid(forecast)
    variables: dict[str, Any] = {name: (dimensions, forecast.values.astype(np.float32, copy=False), dict(attributes))}
    if mapping:
        variables[name][2]["grid_mapping"] = "crs"
        variables["crs"] = ((), np.int32(0), mapping)
    valid = start[:, None] + (leads * 60e9).astype("timedelta64[ns]")
    coordinates = {
        "time": ("time", start, {"standard_name": "forecast_reference_time", "long_name": "last observation"}),
        "lead_time": ("lead_time", leads, {"standard_name": "forecast_period", "units": "minutes"}),
        "valid_time": (("time", "lead_time"), valid, {"standard_name": "time", "long_name": "time of the forecast"}),
        "y": y, "x": x,
    }  # fmt: skip
    dataset = xarray.Dataset(variables, coordinates, {"Conventions": "CF-1.10", "title": title, "source": "fewer"})
    chunks = (1, 1, *forecast.values.shape[2:])
    clock = {"units": "minutes since 1970-01-01 00:00:00", "dtype": "int64", "calendar": "standard"}
    encoding: dict[str, dict[str, Any]] = {"time": clock, "valid_time": dict(clock)}
    encoding[name] = {"zlib": True, "complevel": 4, "chunksizes": chunks, "_FillValue": np.float32(np.nan)}
    _save(dataset, Path(path), encoding)


def _save(dataset: Any, path: Path, encoding: dict[str, dict[str, Any]]) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        dataset.to_netcdf(part, engine="netcdf4", format="NETCDF4", encoding=encoding)
        os.replace(part, path)
    except OSError as error:
        raise refusal(error, path) from error
    finally:
        part.unlink(missing_ok=True)


def _grid(forecast: Forecast) -> tuple[Any, Any, dict[str, Any]]:
    """Coordinates of pixel centres and, where the projection is one we can place, its CF attributes."""
    rows, columns = forecast.values.shape[2:]
    domain = forecast.domain
    corner = easting_northing(domain.projection, *domain.corners["UL"]) if domain and "UL" in domain.corners else None
    if domain is None or corner is None:
        across, down = ((np.arange(count) - (count - 1) / 2) * forecast.kilometres for count in (columns, rows))
        note = "distance from the centre of the domain"
        return (
            ("y", -down, {"units": "km", "long_name": f"northward {note}", "axis": "Y"}),
            ("x", across, {"units": "km", "long_name": f"eastward {note}", "axis": "X"}),
            {},
        )
    x = corner[0] + (np.arange(columns) + 0.5) * domain.pixel_metres[0]
    y = corner[1] - (np.arange(rows) + 0.5) * domain.pixel_metres[1]
    given = _parameters(domain.projection)
    mapping = {
        "grid_mapping_name": "lambert_azimuthal_equal_area",
        "latitude_of_projection_origin": float(given["lat_0"]),
        "longitude_of_projection_origin": float(given["lon_0"]),
        "false_easting": float(given.get("x_0", 0.0)),
        "false_northing": float(given.get("y_0", 0.0)),
        "semi_major_axis": _SEMI_MAJOR,
        "inverse_flattening": 298.257223563,
        "proj4": domain.projection,
    }
    return (
        ("y", y, {"units": "m", "standard_name": "projection_y_coordinate", "axis": "Y"}),
        ("x", x, {"units": "m", "standard_name": "projection_x_coordinate", "axis": "X"}),
        mapping,
    )


def _parameters(projection: str) -> dict[str, str]:
    words = (word.lstrip("+").partition("=") for word in projection.split())
    return {key: value for key, _, value in words}


def easting_northing(projection: str, longitude: float, latitude: float) -> tuple[float, float] | None:
    """Metres in OPERA's projection, Lambert's azimuthal equal-area on WGS84 (Snyder 1987, eq. 24-17 to 24-21).

    None for any other projection, or other parameters than these formulas have: better no place than a wrong one.
    """
    given = _parameters(projection)
    plain = given.get("units", "m") == "m" and given.get("ellps", given.get("datum", "")) == "WGS84"
    if given.get("proj") != "laea" or not plain or not {"lat_0", "lon_0"} <= set(given):
        return None
    e2 = _ECCENTRICITY_SQUARED
    origin, phi = math.radians(float(given["lat_0"])), math.radians(latitude)
    turn = math.radians(longitude - float(given["lon_0"]))
    pole = _authalic(math.pi / 2)
    beta, beta0 = math.asin(_authalic(phi) / pole), math.asin(_authalic(origin) / pole)
    radius = _SEMI_MAJOR * math.sqrt(pole / 2)
    m0 = math.cos(origin) / math.sqrt(1 - e2 * math.sin(origin) ** 2)
    d = _SEMI_MAJOR * m0 / (radius * math.cos(beta0))
    cosine = math.sin(beta0) * math.sin(beta) + math.cos(beta0) * math.cos(beta) * math.cos(turn)
    b = radius * math.sqrt(2 / (1 + cosine))
    x = b * d * math.cos(beta) * math.sin(turn)
    y = b / d * (math.cos(beta0) * math.sin(beta) - math.sin(beta0) * math.cos(beta) * math.cos(turn))
    return x + float(given.get("x_0", 0.0)), y + float(given.get("y_0", 0.0))


def _authalic(phi: float) -> float:
    """q of eq. 3-12."""
    e, s = math.sqrt(_ECCENTRICITY_SQUARED), math.sin(phi)
    return (1 - e * e) * (s / (1 - e * e * s * s) - math.log((1 - e * s) / (1 + e * s)) / (2 * e))
