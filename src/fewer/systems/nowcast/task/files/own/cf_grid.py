"""Which dimensions of a CF variable are x, y and time, and where its pixels are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.own.grid import Grid, check_even, coordinate_system, unplaced

__all__ = ["Axes", "axes_of", "grid_of"]

_DEGREES = "EPSG:4326"
_METRES = {"m": 1.0, "metre": 1.0, "meter": 1.0, "metres": 1.0, "meters": 1.0, "km": 1000.0, "kilometre": 1000.0,
           "kilometer": 1000.0, "kilometers": 1000.0}  # fmt: skip
_STANDARD = {"x": ("projection_x_coordinate", "longitude", "grid_longitude"),
             "y": ("projection_y_coordinate", "latitude", "grid_latitude")}  # fmt: skip
_CALLED = {"x": ("x", "lon", "longitude", "nx", "xc"), "y": ("y", "lat", "latitude", "ny", "yc")}
_PROJECTIONS = ("crs_wkt", "spatial_ref", "proj4", "proj4_params", "proj4text", "esri_pe_string")


class Axes(NamedTuple):
    """Names of dimensions; `time` may be none of the variable's."""

    x: str
    y: str
    time: str


def axes_of(dataset: Any, variable: Any, path: Path) -> Axes:
    """By standard names, by `axis`, by what they are called, and else the last two."""
    found = {}
    for axis in ("x", "y"):
        named = [str(name) for name in variable.dims if _is(dataset, str(name), axis)]
        found[axis] = named[0] if named else str(variable.dims[-1 if axis == "x" else -2])
    times = [str(name) for name in variable.dims if name in dataset.coords and dataset[name].dtype.kind == "M"]
    times += [str(name) for name in variable.dims if str(name) in ("time", "valid_time")]
    if found["x"] == found["y"]:
        raise UserError(f"{path.name}: {variable.name} with dimensions {', '.join(map(str, variable.dims))}", "y and x")
    return Axes(found["x"], found["y"], times[0] if times else "time")


def _is(dataset: Any, name: str, axis: str) -> bool:
    attributes = dataset[name].attrs if name in dataset.variables else {}
    told = attributes.get("standard_name") in _STANDARD[axis] or str(attributes.get("axis", "")).lower() == axis
    return bool(told or name.lower() in _CALLED[axis])


def grid_of(dataset: Any, variable: Any, axes: Axes) -> tuple[Grid, tuple[slice, slice]]:
    """The grid from north to south, and how to turn the values round to it."""
    shape = variable.sizes[axes.y], variable.sizes[axes.x]
    if axes.x not in dataset.variables or axes.y not in dataset.variables:
        return unplaced(*shape, _kilometres(dataset)), (slice(None), slice(None))
    x, y = (np.asarray(dataset[name].values, np.float64) for name in (axes.x, axes.y))
    check_even(x, axes.x)
    check_even(y, axes.y)
    flips = (slice(None, None, -1 if y[0] < y[-1] else 1), slice(None, None, -1 if x[0] > x[-1] else 1))
    projection = _projection(dataset, variable, axes)
    factor = 1.0 if projection and coordinate_system(projection).is_geographic else _metres(dataset, axes)
    return Grid(factor * x[flips[1]], factor * y[flips[0]], projection), flips


def _metres(dataset: Any, axes: Axes) -> float:
    units = str(dataset[axes.x].attrs.get("units", "m"))
    if units not in _METRES:
        raise UserError(f"coordinate {axes.x} in {units!r}", f"one of {', '.join(_METRES)}, or degrees")
    return _METRES[units]


def _projection(dataset: Any, variable: Any, axes: Axes) -> str:
    """As a text that PROJ reads; empty where the file does not say."""
    mapping = str(variable.attrs.get("grid_mapping", variable.encoding.get("grid_mapping", "")))
    attributes = dict(dataset[mapping].attrs) if mapping in dataset.variables else {}
    for name in _PROJECTIONS:
        if str(attributes.get(name, "")).strip():
            return _in_metres(str(attributes[name]))
    if "grid_mapping_name" in attributes:
        return _from_cf(attributes)
    for name in ("proj4", "proj4_params", "projection"):
        if "+proj" in str(dataset.attrs.get(name, "")):
            return _in_metres(str(dataset.attrs[name]))
    degrees = str(dataset[axes.x].attrs.get("units", "")).startswith("degree")
    return _DEGREES if degrees or dataset[axes.x].attrs.get("standard_name") == "longitude" else ""


def _from_cf(attributes: dict[str, Any]) -> str:
    import pyproj

    named = attributes["grid_mapping_name"]
    if named != "latitude_longitude" and not any(
        isinstance(one, int | float | np.number | np.ndarray) for one in attributes.values()
    ):
        raise UserError(f"grid mapping {named!r} without a number", "where its middle is, as CF has it")
    try:
        return str(pyproj.CRS.from_cf(attributes).to_wkt())
    except (pyproj.exceptions.CRSError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"grid mapping {named!r} ({str(error).splitlines()[0]})", "one of CF's, whole") from None


def _in_metres(projection: str) -> str:
    """Coordinates are brought to metres, so the projection is too."""
    from fewer.systems.nowcast.task.files.own.grid import in_metres

    return in_metres(projection)[0]


def _kilometres(dataset: Any) -> float:
    """Of files without coordinates: as an attribute says, else 1."""
    for name in ("res_km", "pixel_km", "kilometres"):
        if name in dataset.attrs:
            return float(dataset.attrs[name])
    return 1.0
