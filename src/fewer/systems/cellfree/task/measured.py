"""A user's own radio environment instead of the simulator's: measured maps, or the log of a drive.

`.npz` with `access_points` (L, 2) in metres and either
  `maps_db` (L, rows, columns), or `map_0`, `map_1`, ... one per access point, and `pixel_m`; or
  `phones` (n, 2) in metres and `rsrp_db` (n, L) in dBm, NaN where an access point was not heard.
`.csv` with a header `x_m,y_m,NAME@X:Y,NAME@X:Y,...`, one column per access point with its place, one row per place,
an empty cell where it was not heard. `signals.py` says what else counts as not heard. Nothing in these files is
executed.
"""

from __future__ import annotations

import csv
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Floats, Integers, generator
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.signals import Log, checked_log, unmarked
from fewer.systems.cellfree.task.world.deployment import Deployment, Radio
from fewer.systems.cellfree.task.world.placement import checked_positions
from fewer.systems.cellfree.task.world.shadowing import MapShadows

__all__ = ["DriveRadio", "MapRadio", "read_deployment"]

_UNHEARD_DB = 30.0  # below the weakest signal of the file: not heard is weak, how weak nobody knows
_FEWEST_PLACES = 3  # one to learn from, one to choose by, one to judge by


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
        """Logged places; train, validation and test never share one, and there may be fewer than asked for.

        Any other part knows what may be learnt from, and no more.
        """
        count_all = len(self.phones)
        order = generator(0, "drive").permutation(count_all)
        first = min(int(0.7 * count_all), count_all - 2)
        second = min(max(int(0.8 * count_all), first + 1), count_all - 1)
        parts = {"train": order[:first], "validation": order[first:second], "test": order[second:]}
        own = parts.get(part, order[:first])
        return np.asarray(self.phones[random.permutation(own)[:count]])


def read_deployment(settings: Settings) -> Deployment:
    """The deployment in the file that the settings name."""
    path = Path(settings.maps)
    kind = path.suffix.lower()
    if kind not in (".npz", ".csv"):
        raise UserError(f"maps {path.name!r}", "a .npz or .csv file", "see fewer.systems.cellfree.task.measured")
    try:
        arrays, lines = (_from_npz(path), []) if kind == ".npz" else _from_csv(path)
    except OSError as error:
        raise UserError(f"maps {settings.maps} ({error.strerror or error})", "a file that can be read") from None
    positions = checked_positions(arrays.get("access_points", np.zeros((0, 2))), f"access points of {path.name}")
    radio: Radio
    if "phones" in arrays:
        ends, signals = checked_log(_logged(arrays, lines, len(positions), path.name))
        radio = _drive(ends, signals, path.name)
    else:
        signals = _maps(arrays, len(positions), path.name)
        lookup = MapShadows(_filled(signals).astype(np.float32), _pixel(arrays, path.name))
        radio, ends = MapRadio(lookup), np.array([[0, 0], lookup.maps.shape[:0:-1]]) * lookup.pixel_m
    area = np.concatenate([ends, positions])
    corner, side = area.min(axis=0), float(max(*np.ptp(area, axis=0), 1.0))
    silent = float(np.nanmin(signals)) - _UNHEARD_DB / 2
    return Deployment(
        positions, settings.height_m, side, radio, seed=settings.deployment_seed, silent_db=silent,
        corner_m=(float(corner[0]), float(corner[1])),
    )  # fmt: skip


def _filled(signals: Floats) -> Floats:
    """What was not heard is weaker than whatever was."""
    return np.where(np.isnan(signals), np.nanmin(signals) - _UNHEARD_DB, signals)


def _from_npz(path: Path) -> dict[str, Floats]:
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {name: np.asarray(file[name], dtype=np.float64) for name in file.files}
    except (ValueError, TypeError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path.name} ({str(error).splitlines()[0]})", "arrays of numbers in an npz file") from None


def _from_csv(path: Path) -> tuple[dict[str, Floats], list[int]]:
    """The table's arrays, and the line of the file in which each row stands."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:  # spreadsheets put a mark before the first column
            reader = csv.reader(file)
            table = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path.name} ({error})", "a table as UTF-8 text") from None
    (_, header), *rows = table or [(1, [])]
    if header[:2] != ["x_m", "y_m"] or not all("@" in name for name in header[2:]):
        raise UserError(f"{path.name} with header {header or '(none)'}", "x_m,y_m,NAME@X:Y,...")
    for line, row in rows:
        if len(row) != len(header):
            raise UserError(f"{path.name} with {len(row)} cells in line {line}", f"{len(header)}, as in the header")
    try:
        places = [[float(n) for n in name.rpartition("@")[2].split(":")] for name in header[2:]]
        cells = np.array([[_number(cell, line) for cell in row] for line, row in rows]).reshape(-1, len(header))
        positions = np.array(places).reshape(-1, 2)
    except ValueError as error:
        raise UserError(f"{path.name} ({error})", "numbers, and NAME@X:Y for each access point") from None
    return {"access_points": positions, "phones": cells[:, :2], "rsrp_db": cells[:, 2:]}, [line for line, _ in rows]


def _number(cell: str, line: int) -> float:
    try:
        return float(cell) if cell else np.nan
    except ValueError:
        raise ValueError(f"{cell!r} in line {line}") from None


def _logged(arrays: dict[str, Floats], lines: list[int], count: int, name: str) -> Log:
    phones, heard = arrays["phones"], arrays.get("rsrp_db", np.zeros((0, 0)))
    if phones.ndim != 2 or phones.shape[1] != 2 or heard.shape != (len(phones), count):
        raise UserError(
            f"{name} with phones {phones.shape} and rsrp_db {heard.shape}", f"(n, 2) and (n, {count}) of the same n"
        )
    return Log(name, phones, heard, lines)


def _drive(phones: Floats, heard: Floats, name: str) -> DriveRadio:
    """A place that was logged more than once counts once, with the mean of what was heard there."""
    places, which = np.unique(phones, axis=0, return_inverse=True)
    if len(places) < _FEWEST_PLACES:
        raise UserError(
            f"{name} with {len(places)} places", f"at least {_FEWEST_PLACES}, one for each part of the data"
        )
    if len(places) == len(phones):
        return DriveRadio(phones, _filled(heard))
    total, times = np.zeros((len(places), heard.shape[1])), np.zeros((len(places), heard.shape[1]))
    np.add.at(total, which.reshape(-1), np.nan_to_num(heard))
    np.add.at(times, which.reshape(-1), ~np.isnan(heard))
    mean = np.divide(total, times, out=np.full_like(total, np.nan), where=times > 0)
    return DriveRadio(places, _filled(mean))


def _maps(arrays: dict[str, Floats], count: int, name: str) -> Floats:
    single = [arrays[f"map_{index}"] for index in range(count) if f"map_{index}" in arrays]
    if single and len({one.shape for one in single}) > 1:
        sizes = sorted({one.shape for one in single})
        raise UserError(f"{name} with maps of sizes {sizes[0]} and {sizes[1]}", "maps of one size")
    maps = unmarked(np.stack(single) if single else arrays.get("maps_db", np.zeros(0)))
    if maps.ndim != 3 or len(maps) != count:
        raise UserError(f"{name} with maps {maps.shape} of {count} access points", f"({count}, rows, columns)")
    if not maps.size:
        raise UserError(f"{name} with maps {maps.shape}", "at least one pixel")
    if np.isinf(maps).any() or np.isnan(maps).all(axis=0).any():
        raise UserError(f"{name} with a pixel that is infinite or where nothing is heard", "dB, NaN where not heard")
    return np.asarray(maps)


def _pixel(arrays: dict[str, Floats], name: str) -> float:
    pixel = float(arrays["pixel_m"]) if "pixel_m" in arrays and arrays["pixel_m"].size == 1 else 0.0
    if not pixel > 0:
        raise UserError(f"{name} with pixel_m {pixel}", "the size of a pixel in metres", "add pixel_m")
    return pixel
