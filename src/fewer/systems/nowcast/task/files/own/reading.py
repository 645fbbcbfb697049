"""Files by what is in them, not by what they are called: HDF5, netCDF, RADOLAN and npz to one sequence of images."""

from __future__ import annotations

import bz2
import gzip
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fewer.core.errors import NoFiles, UserError
from fewer.core.files import npz
from fewer.systems.nowcast.task.files.own import cf, knmi, odim, radolan
from fewer.systems.nowcast.task.files.own.grid import unplaced
from fewer.systems.nowcast.task.files.own.images import Channel, Frame, Images, assembled
from fewer.systems.nowcast.task.files.own.quantities import FASTEST, RAIN

__all__ = ["read_images"]

_LARGEST = 1 << 34  # bytes of one npz's arrays
_FIRST = 64  # bytes that tell
_HDF5, _ZIP, _GZIP, _BZIP = b"\x89HDF\r\n\x1a\n", b"PK\x03\x04", b"\x1f\x8b", b"BZh"


def read_images(paths: str | Path | Iterable[str | Path], *, variables: Sequence[str] = ()) -> Images:
    """Every image of the files, or of the files in a folder, in time's order.

    `variables` names what to read from netCDF: one of rain, or the bands of a satellite in the order wanted.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files = [file for one in given for file in _files(Path(one))]
    if not files:
        raise NoFiles(f"{', '.join(map(str, given)) or 'no file'} without an image", "radar or satellite files")
    if len(files) == 1 and (single := _npz(files[0])) is not None:
        return single
    return assembled([frame for file in files for frame in _frames(file, variables)])


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
    if not path.exists():
        raise NoFiles(f"{path}: no such file", "a radar or satellite file")
    return [path]


def _frames(path: Path, variables: Sequence[str]) -> list[Frame]:
    first = _beginning(path)
    if first.startswith(_HDF5):
        return _hdf5(path, variables)
    if first.startswith(b"CDF"):
        return cf.frames(path, variables)
    if radolan.looks_like(first):
        return radolan.frames(path)
    if first.startswith(_ZIP):
        raise UserError(f"{path.name} among other files", "an npz event by itself: it holds all its times")
    raise UserError(f"{path} that begins with {first[:12]!r}", "HDF5, netCDF, RADOLAN or npz")


def _beginning(path: Path) -> bytes:
    """The first bytes, of what is packed if it is."""
    try:
        with path.open("rb") as file:
            first = file.read(_FIRST)
        for mark, opened in ((_GZIP, gzip.open), (_BZIP, bz2.open)):
            if first.startswith(mark):
                with opened(path) as packed:
                    return bytes(packed.read(_FIRST))
    except (OSError, EOFError, ValueError) as error:
        raise UserError(f"{path} ({error})", "a file that can be read", "download it again") from None
    return first


def _hdf5(path: Path, variables: Sequence[str]) -> list[Frame]:
    """ODIM and KNMI are told by their groups; everything else that is HDF5 may be netCDF."""
    from fewer.systems.nowcast.task.files.region_year import opened

    with opened(path) as file:
        try:
            names = set(file)
            if {"image1", "geographic"} <= names:
                return knmi.frames(file, path)
            if "dataset1" in names:
                return odim.frames(file, path)
        except (OSError, RuntimeError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, UserError):
                raise
            # a dataset where a group should be, a link to nowhere, a block that cannot be unpacked
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(f"{path} ({reason})", "a whole file", "copy or download it again") from None
    return cf.frames(path, variables)


def _npz(path: Path) -> Images | None:
    """An event with `rain`, `step_min`, `res_km` and, if known, `times`; None if the file is none."""
    if not _beginning(path).startswith(_ZIP):
        return None
    try:
        with npz.opened(path, _LARGEST) as held:
            rain, step, side = (np.asarray(held[name]) for name in ("rain", "step_min", "res_km"))
            times = np.asarray(held["times"]) if "times" in held else None
        with np.errstate(over="ignore"):  # beyond all measure: infinite
            rates = rain.astype(np.float32) if rain.dtype.kind in "fiu" else None
        step_minutes, kilometres = float(step), float(side)
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile, EOFError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} ({error})", "an npz with rain, step_min and res_km") from None
    return _event(path, (rain.dtype, rates), (step_minutes, kilometres), times)


def _event(path: Path, rain: tuple[Any, Any], step: tuple[float, float], times: Any) -> Images:
    kind, rates = rain
    step_minutes, kilometres = step
    if rates is None:
        raise UserError(f"{path.name} with rain of type {kind}", "numbers")
    if rates.ndim != 3 or rates.size == 0 or not step_minutes > 0 or not kilometres > 0:
        raise UserError(
            f"{path.name} with rain {rates.shape}, step_min {step_minutes:g}, res_km {kilometres:g}",
            "(time, y, x), minutes and kilometres above 0",
        )
    # how times are written differs, but all writings sort by time
    if times is not None and (times.shape != rates.shape[:1] or not (times[1:] > times[:-1]).all()):
        raise UserError(f"{path.name} with times {times.shape} of {len(rates)} pictures", "one for each, rising")
    rates[np.isinf(rates) | (rates > FASTEST)] = np.nan
    np.maximum(rates, 0.0, out=rates)  # bias corrections leave small negative rates; NaN stays NaN
    since = np.arange(len(rates)) * np.float64(step_minutes)
    start = _first_time(times)
    when = (start or np.datetime64(0, "s")) + np.round(since * 60).astype("timedelta64[s]")
    grid = unplaced(rates.shape[1], rates.shape[2], kilometres)
    return Images(rates[:, None], when, (Channel(*RAIN),), grid, timed=start is not None)


def _first_time(times: Any) -> np.datetime64 | None:
    """Of texts that say a date, or numpy's own times."""
    if times is None:
        return None
    text = str(times[0])
    if text.isdigit() and len(text) in (12, 14):
        text = f"{text[:4]}-{text[4:6]}-{text[6:8]}T{text[8:10]}:{text[10:12]}"
    try:
        found = np.datetime64(text, "s")
    except ValueError:
        return None
    return found if not np.isnat(found) and "-" in text else None
