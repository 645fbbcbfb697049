"""Rain seen by radar alone: ODIM HDF5 composites (one file, or a folder of them) and plain npz events."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.core.files import npz

__all__ = ["Event", "read"]

_LARGEST = 1 << 34  # bytes of one npz's arrays
_FASTEST = 2000.0  # mm/h, more than any rain on record; what is beyond is no measurement


class Event(NamedTuple):
    """One domain over some time."""

    rates: NDArray[np.float32]  # (time, y, x) in mm/h, y from north to south; NaN where no radar looked, 0 where dry
    minutes: NDArray[np.float64]  # (time,), since the first
    kilometres: float  # of a pixel's side


def read(path: str | Path) -> Event:
    """An `.npz` with `rain`, `step_min` and `res_km`, an ODIM file, or a folder of ODIM files of one domain."""
    path = Path(path)
    event = _from_npz(path) if path.suffix == ".npz" else _from_odim(path)
    event.rates[event.rates > _FASTEST] = np.nan
    return event


def _from_odim(path: Path) -> Event:
    from fewer.systems.nowcast.task.files.odim import composites

    files = sorted(p for p in path.iterdir() if p.suffix in (".h5", ".hdf", ".hdf5")) if path.is_dir() else [path]
    if not files:
        raise UserError(f"{path} without .h5 or .hdf files", "ODIM composites")
    pictures = sorted((one for file in files for one in composites(file)), key=lambda one: one.minute)
    first = pictures[0]
    for one in pictures:
        if one.rate.shape != first.rate.shape or one.kilometres != first.kilometres:
            raise UserError(
                f"{one.file} of {one.rate.shape} pixels of {one.kilometres:g} km",
                f"{first.rate.shape} of {first.kilometres:g} km as in {first.file}", "one domain a folder",
            )  # fmt: skip
    minutes = np.array([one.minute - first.minute for one in pictures], dtype=np.float64)
    if len(np.unique(minutes)) < len(minutes):
        raise UserError(f"{path} with two pictures of one time", "each time once", "one product a folder")
    return Event(np.stack([one.rate for one in pictures]), minutes, first.kilometres)


def _from_npz(path: Path) -> Event:
    try:
        with npz.opened(path, _LARGEST) as held:
            rain, step, side = (np.asarray(held[name]) for name in ("rain", "step_min", "res_km"))
            times = np.asarray(held["times"]) if "times" in held else None
            with np.errstate(over="ignore"):  # beyond all measure: infinite
                rates = rain.astype(np.float32, casting="no" if rain.dtype.kind == "b" else "same_kind")
            step_minutes, kilometres = float(step), float(side)
    except UserError:
        raise
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} ({error})", "an npz with rain, step_min and res_km") from None
    if rates.ndim != 3 or rates.size == 0 or not step_minutes > 0 or not kilometres > 0:
        raise UserError(
            f"{path.name} with rain {rates.shape}, step_min {step_minutes:g}, res_km {kilometres:g}",
            "(time, y, x), minutes and kilometres above 0",
        )
    # how times are written differs, but all writings sort by time
    if times is not None and (times.shape != rates.shape[:1] or not (times[1:] > times[:-1]).all()):
        raise UserError(f"{path.name} with times {times.shape} of {len(rates)} pictures", "one for each, rising")
    rates[np.isinf(rates)] = np.nan
    np.maximum(rates, 0.0, out=rates)  # bias corrections leave small negative rates; NaN stays NaN
    return Event(rates, np.arange(len(rates), dtype=np.float64) * np.float64(step_minutes), kilometres)
