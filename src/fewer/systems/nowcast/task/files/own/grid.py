"""Where pixels lie: a projection, the centres of columns and rows in it, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra, UserError

__all__ = ["Grid", "coordinate_system", "unplaced"]

_EARTH_KM = 111.195  # a degree of latitude on a sphere of 6371 km
_EVEN = 0.01  # of a pixel: how far rows and columns may be from evenly spaced


@dataclass(frozen=True)
class Grid:
    """Regular, row 0 in the north. Coordinates are metres in the projection, or degrees if it has none."""

    x: NDArray[np.float64]  # (columns,) of pixel centres, rising
    y: NDArray[np.float64]  # (rows,) of pixel centres, falling
    projection: str = ""  # anything PROJ reads; empty: the place is not known, x and y count from the centre

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, columns."""
        return len(self.y), len(self.x)

    @property
    def placed(self) -> bool:
        return bool(self.projection)

    @property
    def pixel(self) -> tuple[float, float]:
        """Width and height in the units of x and y."""
        across, down = _spacing(self.x), -_spacing(self.y)
        return (across or down or 1000.0), (down or across or 1000.0)  # a single row is as high as it is wide

    @property
    def kilometres(self) -> float:
        """The side of a pixel as large as these are, in the middle of the map."""
        across, down = self.pixel
        if self.degrees:
            middle = np.cos(np.deg2rad(float(self.y.mean())))
            return float(np.sqrt(across * down * max(middle, 1e-3)) * _EARTH_KM)
        return float(np.sqrt(across * down)) / 1000.0

    @property
    def degrees(self) -> bool:
        """Longitude and latitude themselves are the coordinates."""
        return self.placed and bool(coordinate_system(self.projection).is_geographic)

    def longitudes_latitudes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(rows, columns) each, in degrees; of a grid that is placed."""
        across, down = np.meshgrid(self.x, self.y)
        longitudes, latitudes = _to_degrees(self.projection, across, down)
        return longitudes, latitudes

    def window(self, rows: slice, columns: slice) -> Grid:
        """A part of it."""
        return Grid(self.x[columns], self.y[rows], self.projection)

    def coarser(self, factor: int) -> Grid:
        """Blocks of so many pixels a side; what is left over at the far edges falls away."""
        return Grid(_blocks(self.x, factor), _blocks(self.y, factor), self.projection)

    def same_as(self, other: Grid) -> bool:
        """To a hundredth of a pixel."""
        if self.shape != other.shape or self.placed != other.placed:
            return False
        near = _EVEN * min(self.pixel)
        return bool(np.abs(self.x - other.x).max() <= near and np.abs(self.y - other.y).max() <= near)


def unplaced(rows: int, columns: int, kilometres: float) -> Grid:
    """A grid of which only the pixel's size is known."""
    across, down = (_centred(count, kilometres * 1000) for count in (columns, rows))
    return Grid(across, -down)


def _centred(count: int, side: float) -> NDArray[np.float64]:
    return np.asarray((np.arange(count) - (count - 1) / 2) * side, np.float64)


def from_corner(
    projection: str, corner: tuple[float, float], *, pixel: tuple[float, float], shape: tuple[int, int]
) -> Grid:
    """From the upper left corner (not centre) and the pixel's size, both in the projection's metres."""
    rows, columns = shape
    x = corner[0] + (np.arange(columns, dtype=np.float64) + 0.5) * pixel[0]
    y = corner[1] - (np.arange(rows, dtype=np.float64) + 0.5) * pixel[1]
    return Grid(np.asarray(x, np.float64), np.asarray(y, np.float64), projection)


def coordinate_system(projection: str) -> Any:
    """PROJ's object for what a file says."""
    try:
        import pyproj
    except ImportError as error:
        raise MissingExtra("no pyproj", "it installed, to place maps", "pip install 'fewer[nowcast]'") from error
    try:
        return pyproj.CRS.from_user_input(projection)
    except pyproj.exceptions.CRSError as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"projection {projection[:120]!r} ({reason})", "one that PROJ knows") from None


def easting_northing(projection: str, longitude: float, latitude: float) -> tuple[float, float]:
    """In the projection's metres."""
    import pyproj

    system = coordinate_system(projection)
    x, y = pyproj.Transformer.from_crs(system.geodetic_crs, system, always_xy=True).transform(longitude, latitude)
    if not np.isfinite([x, y]).all():
        raise UserError(f"{longitude:g} E {latitude:g} N", f"a place that {projection[:80]!r} can show")
    return float(x), float(y)


def _to_degrees(projection: str, x: Any, y: Any) -> Any:
    import pyproj

    system = coordinate_system(projection)
    return pyproj.Transformer.from_crs(system, system.geodetic_crs, always_xy=True).transform(x, y)


def in_metres(projection: str) -> tuple[str, float]:
    """The same projection in metres, and what its own unit is in metres; degrees stay as they are."""
    system = coordinate_system(projection)
    if system.is_geographic or not system.axis_info:
        return projection, 1.0
    factor = float(system.axis_info[0].unit_conversion_factor)
    if factor == 1.0:
        return projection, 1.0
    return str(system.to_proj4()).replace("+units=km", "+units=m"), factor


def check_even(values: NDArray[np.float64], what: str) -> None:
    """Rows or columns of a grid, or one line."""
    if values.ndim != 1 or len(values) < 2:
        raise UserError(f"{what} of shape {values.shape}", "two or more numbers in a row")
    if lost := int((~np.isfinite(values)).sum()):
        raise UserError(f"{what} with {lost} of {len(values)} values missing", "where every row and column is")
    steps = np.diff(values)
    if steps[0] == 0 or np.abs(steps - steps[0]).max() > 10 * _EVEN * abs(steps[0]):
        raise UserError(f"{what} with steps of {steps.min():g} to {steps.max():g}", "even steps", "resample it first")


def _spacing(values: NDArray[np.float64]) -> float:
    return float((values[-1] - values[0]) / (len(values) - 1)) if len(values) > 1 else 0.0


def _blocks(values: NDArray[np.float64], factor: int) -> NDArray[np.float64]:
    whole = len(values) - len(values) % factor
    means: NDArray[np.float64] = values[:whole].reshape(-1, factor).mean(1)
    return means
