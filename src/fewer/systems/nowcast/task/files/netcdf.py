"""Forecasts for everybody's tools: CF-NetCDF through xarray, of any domain size, on a map where its place is known."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra, UserError
from fewer.core.files.atomic import refusal
from fewer.systems.nowcast.task.files.own.grid import Grid, coordinate_system

__all__ = ["Forecast", "probability_name", "write_netcdf"]

_KINDS: dict[str, dict[str, str]] = {
    "rain_probability": {"units": "1", "long_name": "probability of rain"},
    "rain": {"units": "1", "long_name": "rain forecast: 1 yes, 0 no"},
    "rain_rate": {"units": "mm h-1", "standard_name": "rainfall_rate", "long_name": "rain rate"},
}
_CLOCK = {"units": "minutes since 1970-01-01 00:00:00", "dtype": "int64", "calendar": "standard"}
Values = NDArray[np.float32]


def probability_name(rain_mm_per_hour: float) -> str:
    """Of the variable; rain as such begins at 0.2 mm/h.

    >>> probability_name(0.2), probability_name(5.0), probability_name(0.5)
    ('rain_probability', 'rain_probability_5', 'rain_probability_0p5')
    """
    return "rain_probability" + ("" if rain_mm_per_hour == 0.2 else f"_{rain_mm_per_hour:g}".replace(".", "p"))


@dataclass(frozen=True)
class Forecast:
    """Values on a regular grid, y from north to south; NaN where nothing is known."""

    fields: Mapping[str, Values]  # by variable: (time, lead_time, y, x)
    times: NDArray[np.datetime64]  # (time,), of the last observation
    minutes: Sequence[float]  # (lead_time,) ahead
    grid: Grid
    notes: Mapping[str, str] = field(default_factory=dict)  # attributes of the file

    def __post_init__(self) -> None:
        for name, values in self.fields.items():
            if _kind(name) is None:
                raise UserError(f"variable {name!r}", f"one of {', '.join(_KINDS)}")
            expected = (len(self.times), len(self.minutes), *self.grid.shape)
            if values.shape != expected or 0 in expected:
                raise UserError(
                    f"{name} {values.shape} at {len(self.times)} times", f"{expected}: (time, lead_time, y, x)"
                )


def _kind(name: str) -> dict[str, str] | None:
    if name.startswith("rain_probability_"):
        least = name.removeprefix("rain_probability_").replace("p", ".")
        return {"units": "1", "long_name": f"probability of rain of at least {least} mm/h"}
    return _KINDS.get(name)


def write_netcdf(path: str | Path, forecast: Forecast, *, title: str = "Rain forecast") -> None:
    """One file, compressed, whole or absent.

    Of one reference time the dimensions are (time, y, x), time being that of the forecast, which every GIS animates;
    of several they are (time, lead_time, y, x), time being that of the last observation.
    """
    try:
        import xarray
    except ImportError as error:
        raise MissingExtra("no xarray", "it installed, to write NetCDF", "pip install 'fewer[nowcast]'") from error
    single = len(forecast.times) == 1
    dimensions = ("time", "y", "x") if single else ("time", "lead_time", "y", "x")
    y, x, mapping = _axes(forecast.grid)
    variables: dict[str, Any] = {}
    encoding: dict[str, dict[str, Any]] = {}
    for name, values in forecast.fields.items():
        attributes = dict(_kind(name) or {}) | ({"grid_mapping": "crs"} if mapping else {})
        variables[name] = (dimensions, (values[0] if single else values).astype(np.float32, copy=False), attributes)
        chunks = (1,) * (len(dimensions) - 2) + forecast.grid.shape
        encoding[name] = {"zlib": True, "complevel": 4, "chunksizes": chunks, "_FillValue": np.float32(np.nan)}
    if mapping:
        variables["crs"] = ((), np.int32(0), mapping)
    coordinates, clocks = _single(forecast) if single else _several(forecast)
    coordinates |= {"y": y, "x": x} | (_degrees(forecast.grid) if mapping else {})
    header = {"Conventions": "CF-1.10", "title": title, "source": "fewer", **forecast.notes}
    _save(
        xarray.Dataset(variables, coordinates, header), Path(path), encoding | {name: dict(_CLOCK) for name in clocks}
    )


def _valid(forecast: Forecast) -> Any:
    ahead = (np.asarray(forecast.minutes) * 60e9).astype("timedelta64[ns]")
    return forecast.times.astype("datetime64[ns]")[:, None] + ahead


def _single(forecast: Forecast) -> tuple[dict[str, Any], list[str]]:
    leads = np.asarray(forecast.minutes, np.float64)
    reference = {"standard_name": "forecast_reference_time", "long_name": "last observation"}
    return {
        "time": ("time", _valid(forecast)[0], {"standard_name": "time", "long_name": "time of the forecast"}),
        "lead_time": ("time", leads, {"standard_name": "forecast_period", "units": "minutes"}),
        "forecast_reference_time": ((), forecast.times.astype("datetime64[ns]")[0], reference),
    }, ["time", "forecast_reference_time"]


def _several(forecast: Forecast) -> tuple[dict[str, Any], list[str]]:
    leads, start = np.asarray(forecast.minutes, np.float64), forecast.times.astype("datetime64[ns]")
    valid = {"standard_name": "time", "long_name": "time of the forecast"}
    return {
        "time": ("time", start, {"standard_name": "forecast_reference_time", "long_name": "last observation"}),
        "lead_time": ("lead_time", leads, {"standard_name": "forecast_period", "units": "minutes"}),
        "valid_time": (("time", "lead_time"), _valid(forecast), valid),
    }, ["time", "valid_time"]


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


def _axes(grid: Grid) -> tuple[Any, Any, dict[str, Any]]:
    """Coordinates of pixel centres and, where the place is known, CF's attributes of the projection."""
    if not grid.placed:
        note = "distance from the centre of the domain"
        return (
            ("y", grid.y / 1000, {"units": "km", "long_name": f"northward {note}", "axis": "Y"}),
            ("x", grid.x / 1000, {"units": "km", "long_name": f"eastward {note}", "axis": "X"}),
            {},
        )
    system = coordinate_system(grid.projection)
    mapping = {key: value for key, value in system.to_cf().items() if value is not None}
    (across, down), left, top = grid.pixel, grid.x[0], grid.y[0]
    # GDAL's own words for the same, for tools that do not read CF's
    mapping["spatial_ref"] = mapping["crs_wkt"]
    mapping["GeoTransform"] = f"{float(left - across / 2)!r} {across!r} 0 {float(top + down / 2)!r} 0 {-down!r}"
    if grid.degrees:
        return (
            ("y", grid.y, {"units": "degrees_north", "standard_name": "latitude", "axis": "Y"}),
            ("x", grid.x, {"units": "degrees_east", "standard_name": "longitude", "axis": "X"}),
            mapping,
        )
    return (
        ("y", grid.y, {"units": "m", "standard_name": "projection_y_coordinate", "axis": "Y"}),
        ("x", grid.x, {"units": "m", "standard_name": "projection_x_coordinate", "axis": "X"}),
        mapping,
    )


def _degrees(grid: Grid) -> dict[str, Any]:
    """Longitude and latitude of every pixel, for tools that know no projections."""
    if grid.degrees:
        return {}
    longitudes, latitudes = (part.astype(np.float32) for part in grid.longitudes_latitudes())
    return {
        "longitude": (("y", "x"), longitudes, {"units": "degrees_east", "standard_name": "longitude"}),
        "latitude": (("y", "x"), latitudes, {"units": "degrees_north", "standard_name": "latitude"}),
    }
