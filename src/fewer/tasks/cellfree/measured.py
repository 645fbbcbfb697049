"""A user's own radio environment instead of the simulator's: measured maps, or the log of a drive.

`.npz` with `access_points` (L, 2) in metres and either
  `maps_db` (L, rows, columns), or `map_0`, `map_1`, ... one per access point, and `pixel_m`; or
  `phones` (n, 2) in metres and `rsrp_db` (n, L), NaN where an access point was not heard.
`.csv` with a header `x_m,y_m,NAME@X:Y,NAME@X:Y,...`, one column per access point with its place, one row per place,
an empty cell where it was not heard. Nothing in these files is executed.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from fewer.core.errors import UserError
from fewer.tasks.cellfree.arrays import Floats, Integers, generator
from fewer.tasks.cellfree.deployment import Deployment, Radio
from fewer.tasks.cellfree.placement import checked_positions
from fewer.tasks.cellfree.settings import Settings
from fewer.tasks.cellfree.shadowing import MapShadows

__all__ = ["DriveRadio", "MapRadio", "read_deployment"]

_UNHEARD_DB = 30.0  # below the weakest signal of the file: not heard is weak, how weak nobody knows
_PARTS = {"train": (0.0, 0.7), "validation": (0.7, 0.8), "test": (0.8, 1.0)}


@dataclass(frozen=True)
class MapRadio:
    """Gains on a grid, looked up at the nearest pixel."""

    lookup: MapShadows

    def gain_db(self, phones: Floats, links: Integers | None) -> Floats:
        """See `Radio.gain_db`."""
        return np.asarray(self.lookup.at(phones, links), dtype=np.float64)

    def places(self, random: np.random.Generator, count: int, *, part: str) -> Floats:
        """Uniform over the map."""
        _, rows, columns = self.lookup.maps.shape
        return np.asarray(random.uniform(0.0, 1.0, (count, 2)) * self.lookup.pixel_m * np.array([columns, rows]))


class DriveRadio:
    """Gains at logged places; elsewhere those of the nearest one."""

    def __init__(self, phones: Floats, rsrp_db: Floats) -> None:
        self.phones, self.rsrp_db = phones, rsrp_db
        self._tree = cKDTree(phones)

    def gain_db(self, phones: Floats, links: Integers | None) -> Floats:
        """See `Radio.gain_db`."""
        heard = self.rsrp_db[self._tree.query(phones)[1]]
        return heard if links is None else np.take_along_axis(heard, links, axis=1)

    def places(self, random: np.random.Generator, count: int, *, part: str) -> Floats:
        """Logged places; train, validation and test never share one, and there may be fewer than asked for."""
        order = generator(0, "drive").permutation(len(self.phones))
        begin, end = _PARTS.get(part, (0.0, 1.0))
        own = order[int(begin * len(order)) : max(int(end * len(order)), int(begin * len(order)) + 1)]
        return np.asarray(self.phones[random.permutation(own)[:count]])


def read_deployment(settings: Settings) -> Deployment:
    """The deployment in the file that the settings name."""
    path = Path(settings.maps)
    if path.suffix not in (".npz", ".csv"):
        raise UserError(f"maps {path.name!r}", "a .npz or .csv file", "see fewer.tasks.cellfree.measured")
    try:
        arrays = _from_npz(path) if path.suffix == ".npz" else _from_csv(path)
    except OSError as error:
        raise UserError(f"maps {settings.maps} ({error.strerror or error})", "a file that can be read") from None
    positions = checked_positions(arrays.get("access_points", np.zeros((0, 2))), f"access points of {path.name}")
    radio: Radio
    if "phones" in arrays:
        radio = _drive(arrays, len(positions), path.name)
        extent = np.ptp(arrays["phones"], axis=0)
    else:
        lookup = MapShadows(_maps(arrays, len(positions), path.name), _pixel(arrays, path.name))
        radio, extent = MapRadio(lookup), np.array(lookup.maps.shape[1:]) * lookup.pixel_m
    side = float(max(*extent, *np.ptp(positions, axis=0), 1.0))
    return Deployment(positions, settings.height_m, side, radio, seed=settings.deployment_seed)


def _from_npz(path: Path) -> dict[str, Floats]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: np.asarray(file[name], dtype=np.float64) for name in file.files}
    except (ValueError, TypeError, EOFError, KeyError) as error:
        raise UserError(f"{path.name} ({str(error).splitlines()[0]})", "arrays of numbers in an npz file") from None


def _from_csv(path: Path) -> dict[str, Floats]:
    with open(path, newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows or rows[0][:2] != ["x_m", "y_m"] or not all("@" in name for name in rows[0][2:]):
        raise UserError(f"{path.name} with header {rows[0] if rows else '(none)'}", "x_m,y_m,NAME@X:Y,...")
    try:
        places = [[float(n) for n in name.rpartition("@")[2].split(":")] for name in rows[0][2:]]
        table = np.array([[float(cell) if cell.strip() else np.nan for cell in row] for row in rows[1:]])
        positions = np.array(places).reshape(-1, 2)
    except ValueError as error:
        raise UserError(f"{path.name} ({error})", "numbers, and as many cells in a row as in the header") from None
    if table.ndim != 2 or table.shape[1] != len(rows[0]):
        raise UserError(f"{path.name} with rows of unlike length", f"{len(rows[0])} cells in each row")
    return {"access_points": positions, "phones": table[:, :2], "rsrp_db": table[:, 2:]}


def _drive(arrays: dict[str, Floats], count: int, name: str) -> DriveRadio:
    phones, heard = arrays["phones"], arrays.get("rsrp_db", np.zeros((0, 0)))
    if phones.ndim != 2 or phones.shape[1] != 2 or heard.shape != (len(phones), count):
        raise UserError(
            f"{name} with phones {phones.shape} and rsrp_db {heard.shape}", f"(n, 2) and (n, {count}) of the same n"
        )
    if not np.isfinite(phones).all() or np.isinf(heard).any() or np.isnan(heard).all(axis=1).any():
        raise UserError(f"{name} with a place that is NaN or where nothing was heard", "finite places and signals")
    weakest = np.nanmin(heard) - _UNHEARD_DB
    return DriveRadio(phones, np.where(np.isnan(heard), weakest, heard))


def _maps(arrays: dict[str, Floats], count: int, name: str) -> Floats:
    single = [arrays[f"map_{index}"] for index in range(count) if f"map_{index}" in arrays]
    if single and len({one.shape for one in single}) > 1:
        sizes = sorted({one.shape for one in single})
        raise UserError(f"{name} with maps of sizes {sizes[0]} and {sizes[1]}", "maps of one size")
    maps = np.stack(single) if single else arrays.get("maps_db", np.zeros(0))
    if maps.ndim != 3 or len(maps) != count:
        raise UserError(f"{name} with maps {maps.shape} of {count} access points", f"({count}, rows, columns)")
    if np.isinf(maps).any() or np.isnan(maps).all(axis=0).any():
        raise UserError(f"{name} with a pixel that is infinite or where nothing is heard", "dB, NaN where not heard")
    return np.where(np.isnan(maps), np.nanmin(maps) - _UNHEARD_DB, maps).astype(np.float32)


def _pixel(arrays: dict[str, Floats], name: str) -> float:
    pixel = float(arrays["pixel_m"]) if "pixel_m" in arrays and arrays["pixel_m"].size == 1 else 0.0
    if not pixel > 0:
        raise UserError(f"{name} with pixel_m {pixel}", "the size of a pixel in metres", "add pixel_m")
    return pixel
