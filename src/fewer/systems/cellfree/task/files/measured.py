"""A user's own radio environment instead of the simulator's: measured maps, or the log of a drive.

`.npz` with `access_points` (L, 2) in metres, if wanted their `names` (L,), and either
  `maps_db` (L, rows, columns), or `map_0`, `map_1`, ... one per access point, with `pixel_m`, and `origin_m` (2,), the
  south-west corner where it is not 0, 0; or
  `phones` (n, 2) in metres and `rsrp_db` (n, L) in dBm, NaN where an access point was not heard.
`.csv`, wide or long: `drive.py`; `signals.py` says which numbers are none. Nothing in these files is executed.
"""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Floats
from fewer.systems.cellfree.task.files.drive import logged
from fewer.systems.cellfree.task.files.signals import Log, audible, check_places, powers, unmarked
from fewer.systems.cellfree.task.files.table import read_table
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.world.deployment import Deployment, Radio
from fewer.systems.cellfree.task.world.given import DriveRadio, MapRadio
from fewer.systems.cellfree.task.world.placement import checked_positions
from fewer.systems.cellfree.task.world.shadowing import MapShadows

__all__ = ["read_deployment"]

_UNHEARD_DB = 30.0  # below the weakest signal of the file: not heard is weak, how weak nobody knows
_MAP_DB = (-300.0, 100.0)
_FEWEST_PLACES = 3  # one to learn from, one to choose by, one to judge by


@dataclass(frozen=True)
class _Found:
    """What every kind of file comes down to."""

    positions: Floats  # (L, 2)
    names: tuple[str, ...]
    radio: Radio
    weakest_db: float
    area: Floats  # (n, 2) places that the area holds


def read_deployment(settings: Settings) -> Deployment:
    """The deployment in the file that the settings name."""
    path = Path(settings.maps)
    kind = path.suffix.lower()
    if kind not in (".npz", ".csv"):
        raise UserError(f"maps {path.name!r}", "a .npz or .csv file", "see fewer.systems.cellfree.task.files")
    try:
        found = (_npz if kind == ".npz" else _csv)(path, settings.unheard_db)
    except OSError as error:
        raise UserError(f"maps {settings.maps} ({error.strerror or error})", "a file that can be read") from None
    area = np.concatenate([found.area, found.positions])
    corner, side = area.min(axis=0), float(max(*np.ptp(area, axis=0), 1.0))
    return Deployment(
        found.positions, settings.height_m, side, found.radio, seed=settings.deployment_seed,
        silent_db=found.weakest_db - _UNHEARD_DB / 2, corner_m=(float(corner[0]), float(corner[1])), names=found.names,
    )  # fmt: skip


def filled(signals: Floats) -> Floats:
    """What was not heard is weaker than whatever was."""
    return np.where(np.isnan(signals), np.nanmin(signals) - _UNHEARD_DB, signals)


def _csv(path: Path, unheard: tuple[float, ...]) -> _Found:
    positions, log = logged(read_table(path), unheard)
    return _drive(_checked(positions, log.names, path.name), log)


def _npz(path: Path, unheard: tuple[float, ...]) -> _Found:
    arrays, names = _arrays(path)
    positions = _checked(arrays.get("access_points", np.zeros((0, 2))), names, path.name)
    if "phones" in arrays:
        log = Log(path.name, *_logged(arrays, len(positions), path.name), names)
        check_places(log)
        return _drive(positions, log.heard(powers(log, unheard)))
    signals = unmarked(_maps(arrays, len(positions), path.name), unheard)
    _check_gains(signals, path.name)
    pixel, origin = _pixel(arrays, path.name), _origin(arrays, path.name)
    radio = MapRadio(MapShadows(filled(signals).astype(np.float32), pixel), origin)
    ends = np.array(origin) + np.array([[0, 0], signals.shape[:0:-1]]) * pixel
    _refuse_outside(positions, ends, path.name)
    return _Found(positions, names, radio, float(np.nanmin(signals)), ends)


def _checked(positions: Floats, names: tuple[str, ...], file: str) -> Floats:
    if names and len(names) != len(positions):
        raise UserError(f"{file} with {len(names)} names of {len(positions)} access points", "one name for each")
    if "" in names:
        raise UserError(f"{file} with access point {names.index('') + 1} without a name", "a name for each")
    name, times = (Counter(names).most_common(1) or [("", 1)])[0]
    if times > 1:
        raise UserError(f"{file} with {times} access points named {name}", "a name of its own for each")
    return checked_positions(positions, f"access points of {file}", names)


def _drive(positions: Floats, log: Log) -> _Found:
    """A place that was logged more than once counts once, with the mean of what was heard there."""
    log = audible(log)
    phones, heard = log.phones, log.rsrp_db
    places, which = np.unique(phones, axis=0, return_inverse=True)
    if len(places) < _FEWEST_PLACES:
        raise UserError(
            f"{log.name} with {len(places)} places", f"at least {_FEWEST_PLACES}, one for each part of the data"
        )
    weakest = float(np.nanmin(heard))
    if len(places) == len(phones):
        return _Found(positions, log.names, DriveRadio(phones, filled(heard)), weakest, phones)
    total, times = np.zeros((len(places), heard.shape[1])), np.zeros((len(places), heard.shape[1]))
    np.add.at(total, which.reshape(-1), np.nan_to_num(heard))
    np.add.at(times, which.reshape(-1), ~np.isnan(heard))
    mean = np.divide(total, times, out=np.full_like(total, np.nan), where=times > 0)
    return _Found(positions, log.names, DriveRadio(places, filled(mean)), weakest, places)


def _arrays(path: Path) -> tuple[dict[str, Floats], tuple[str, ...]]:
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            names = tuple(str(name).strip() for name in file["names"].reshape(-1)) if "names" in file.files else ()
            return {name: np.asarray(file[name], dtype=np.float64) for name in file.files if name != "names"}, names
    except (ValueError, TypeError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path.name} ({str(error).splitlines()[0]})", "arrays of numbers in an npz file") from None


def _logged(arrays: dict[str, Floats], count: int, name: str) -> tuple[Floats, Floats]:
    phones, heard = arrays["phones"], arrays.get("rsrp_db", np.zeros((0, 0)))
    if phones.ndim != 2 or phones.shape[1] != 2 or heard.shape != (len(phones), count):
        raise UserError(
            f"{name} with phones {phones.shape} and rsrp_db {heard.shape}", f"(n, 2) and (n, {count}) of the same n"
        )
    return phones, heard


def _maps(arrays: dict[str, Floats], count: int, name: str) -> Floats:
    single = [arrays[f"map_{index}"] for index in range(count) if f"map_{index}" in arrays]
    if single and len({one.shape for one in single}) > 1:
        sizes = sorted({one.shape for one in single})
        raise UserError(f"{name} with maps of sizes {sizes[0]} and {sizes[1]}", "maps of one size")
    maps = np.stack(single) if single else arrays.get("maps_db", np.zeros(0))
    if maps.ndim != 3 or len(maps) != count:
        raise UserError(f"{name} with maps {maps.shape} of {count} access points", f"({count}, rows, columns)")
    if not maps.size:
        raise UserError(f"{name} with maps {maps.shape}", "at least one pixel")
    return np.asarray(maps)


def _check_gains(maps: Floats, name: str) -> None:
    """Maps may be of gains, which reach further than received power; no map reaches as far as a mark."""
    if np.isnan(maps).all(axis=0).any():
        raise UserError(f"{name} with a pixel where nothing is heard", "dB, NaN where not heard")
    low, high = _MAP_DB
    wrong = ~np.isnan(maps) & ~((maps >= low) & (maps <= high))
    if wrong.any():
        point, row, column = (int(index) for index in np.argwhere(wrong)[0])
        value = maps[point, row, column]
        raise UserError(
            f"{name} with {value:.10g} dB in map {point}, row {row}, column {column} (from 0)",
            f"{low:g} to {high:g} dB, NaN where not heard",
            f"if it marks what was not heard, --set unheard={value:.10g}" if np.isfinite(value) else "",
        )


def _pixel(arrays: dict[str, Floats], name: str) -> float:
    pixel = float(arrays["pixel_m"]) if "pixel_m" in arrays and arrays["pixel_m"].size == 1 else 0.0
    if not pixel > 0:
        raise UserError(f"{name} with pixel_m {pixel}", "the size of a pixel in metres", "add pixel_m")
    return pixel


def _origin(arrays: dict[str, Floats], name: str) -> tuple[float, float]:
    origin = arrays.get("origin_m", np.zeros(2)).reshape(-1)
    if origin.shape != (2,) or not np.isfinite(origin).all():
        raise UserError(f"{name} with origin_m {origin.tolist()}", "x and y of the map's south-west corner in metres")
    return float(origin[0]), float(origin[1])


def _refuse_outside(positions: Floats, ends: Floats, name: str) -> None:
    """Access points around a map are fine; all of them elsewhere means that the map lies elsewhere too."""
    size = np.ptp(ends, axis=0)
    if ((positions < ends[0] - size) | (positions > ends[1] + size)).any(axis=1).all():
        (west, south), (east, north) = ends
        raise UserError(
            f"{name} with maps of {west:g} to {east:g} m and {south:g} to {north:g} m and every access point elsewhere",
            "both in the same coordinates",
            "add origin_m, the map's south-west corner",
        )
