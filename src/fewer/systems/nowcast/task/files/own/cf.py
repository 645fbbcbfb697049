"""NetCDF by the CF conventions: which variables are images, where their pixels are, and what they measure.

Rain is found by its units and name; otherwise every variable on one grid is a band, as is every layer of a variable
that has one more dimension. Names given by the user come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra, UserError
from fewer.core.settings import nearest
from fewer.systems.nowcast.task.files.own.cf_grid import Axes, axes_of, grid_of
from fewer.systems.nowcast.task.files.own.images import Channel, Frame
from fewer.systems.nowcast.task.files.own.quantities import RAIN, as_rates, kind_of

__all__ = ["frames"]

_RANK = {"rate": 0, "amount": 1, "echo": 2}


@dataclass(frozen=True)
class _Band:
    """A variable, or one layer of it."""

    variable: Any  # xarray's
    layer: int | None
    name: str


def frames(path: Path, variables: Sequence[str] = ()) -> list[Frame]:
    """Every time of a file."""
    dataset = _opened(path)
    try:
        chosen, kind = _chosen(dataset, path, variables)
        axes = axes_of(dataset, chosen[0], path)
        grid, flips = grid_of(dataset, chosen[0], axes)
        times = _times(dataset, chosen[0], path)
        bands = [band for variable in chosen for band in _bands(variable, axes)]
        found = []
        for number, time in enumerate(times):
            values = np.stack([_plane(band, axes, number)[flips] for band in bands])
            channels = tuple(Channel(band.name, str(band.variable.attrs.get("units", "1"))) for band in bands)
            if kind:
                hours = _hours(dataset, number) if kind == "amount" else None
                values, channels = as_rates(values, channels[0].units, hours=hours, what=path.name), (Channel(*RAIN),)
            found.append(Frame(values.astype(np.float32), time, channels, grid, path.name))
        return found
    except (KeyError, TypeError, ValueError, RuntimeError, OSError, IndexError, AttributeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path.name} ({str(error).splitlines()[0]})", "netCDF by the CF conventions") from None
    finally:
        dataset.close()


def _opened(path: Path) -> Any:
    try:
        import xarray
    except ImportError as error:
        raise MissingExtra("no xarray", "it installed, to read netCDF", "pip install 'fewer[nowcast]'") from error
    try:
        return xarray.open_dataset(path, engine="netcdf4", decode_timedelta=False)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: {reason}", "a whole netCDF file", "copy or download it again") from None


def _chosen(dataset: Any, path: Path, names: Sequence[str]) -> tuple[list[Any], str]:
    """The variables, and what kind of rain they are (empty: bands)."""
    images = {str(name): one for name, one in dataset.data_vars.items() if one.ndim >= 2 and one.dtype.kind in "fiu"}
    if names:
        for name in names:
            if name not in images:
                raise UserError(
                    f"variable {name!r} of {path.name}", "an image in it", nearest(name, list(images) or ["none"])
                )
        chosen = [images[name] for name in names]
        return chosen, _kind(chosen[0]) if len(chosen) == 1 else ""
    rain = sorted((one for one in images.values() if _kind(one)), key=lambda one: _RANK[_kind(one)])
    if rain:
        return rain[:1], _kind(rain[0])
    if not images:
        held = ", ".join(map(str, dataset.variables)) or "nothing"
        raise UserError(f"{path.name} with {held}", "rain or satellite images", "name one with --variable")
    first = max(images.values(), key=lambda one: one.ndim)
    return [one for one in images.values() if one.dims[-2:] == first.dims[-2:]], ""


def _kind(variable: Any) -> str:
    attributes = variable.attrs
    return kind_of(str(variable.name), str(attributes.get("units", "")), str(attributes.get("standard_name", "")))


def _bands(variable: Any, axes: Axes) -> list[_Band]:
    others = [name for name in variable.dims if name not in (axes.x, axes.y, axes.time)]
    if not others:
        return [_Band(variable, None, str(variable.name))]
    if len(others) > 1:
        raise UserError(f"{variable.name} with dimensions {', '.join(map(str, variable.dims))}", "time, band, y and x")
    labels = variable[others[0]].values if others[0] in variable.coords else np.arange(variable.sizes[others[0]])
    return [
        _Band(variable, k, str(label) if str(label).isidentifier() else f"{variable.name}_{label}")
        for k, label in enumerate(labels)
    ]


def _plane(band: _Band, axes: Axes, number: int) -> NDArray[Any]:
    """(y, x) of one time."""
    part = band.variable
    if axes.time in part.dims:
        part = part.isel({axes.time: number})
    if band.layer is not None:
        other = next(name for name in part.dims if name not in (axes.x, axes.y))
        part = part.isel({other: band.layer})
    return np.asarray(part.transpose(axes.y, axes.x).values, np.float32)


def _times(dataset: Any, variable: Any, path: Path) -> NDArray[np.datetime64]:
    """Of the `time` dimension, or of a single time in the file."""
    candidates = [*variable.coords.values(), *dataset.variables.values()]
    for one in candidates:
        named = str(getattr(one, "name", "")) in ("time", "valid_time") or one.attrs.get("standard_name") == "time"
        if (
            one.dtype.kind == "M"
            and (named or one.ndim == 1)
            and one.attrs.get("standard_name") != "forecast_reference_time"
        ):
            found: NDArray[np.datetime64] = np.atleast_1d(one.values).astype("datetime64[s]")
            if np.isnat(found).any():
                break
            return found
    for name in ("time_coverage_end", "time_coverage_start", "date_time", "nominal_product_time"):
        if name in dataset.attrs:
            return np.array([np.datetime64(str(dataset.attrs[name]).rstrip("Z"), "s")])
    raise UserError(f"{path.name} without times", "a time coordinate with units such as minutes since 2020-01-01")


def _hours(dataset: Any, number: int) -> float | None:
    """Over which an amount fell: from bounds, or a start time."""
    for name in ("time_bnds", "time_bounds"):
        if name in dataset.variables:
            first, last = np.atleast_2d(dataset.variables[name].values)[number]
            return float((last - first) / np.timedelta64(1, "s")) / 3600.0
    if "start_time" in dataset.variables:
        start = np.atleast_1d(dataset.variables["start_time"].values)
        end = np.atleast_1d(dataset.variables["valid_time" if "valid_time" in dataset.variables else "time"].values)
        return float((end[number] - start[min(number, len(start) - 1)]) / np.timedelta64(1, "s")) / 3600.0
    return None
