"""Logged experience from a file, whatever its kind: D4RL's HDF5, a Minari dataset, or own arrays; no simulator."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path

import numpy as np

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically
from fewer.systems.control.task.logs import checks, d4rl, minari_data
from fewer.systems.control.task.logs.assemble import assemble
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS, Environment
from fewer.systems.control.task.worlds.simulator import missing

__all__ = ["guess", "read", "write_arrays"]

_HDF5, _ZIP = b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"


def read(path: str | Path, environment: Environment | None = None) -> Transitions:
    """Checked transitions; the kind is told by the content, not by the name."""
    place = Path(path)
    if not place.exists():
        place = minari_data.named(path) or place
    if place.is_dir():
        place = minari_data.main_file(place)
    try:
        with open(place, "rb") as file:
            start = file.read(8)
    except OSError as error:
        raise UserError(f"{path} ({error.strerror})", "a file of logged experience that can be read") from None
    if start == _HDF5:
        steps = _from_hdf5(place)
    elif start[:4] == _ZIP:
        steps = _from_arrays(place)
    else:
        kind = "an empty file" if not start else "neither HDF5 nor npz"
        raise UserError(f"{path}, {kind}", "D4RL's or Minari's HDF5, or an npz of " + ", ".join(Transitions._fields))
    checks.check(str(path), steps, environment)
    return steps


def guess(path: str | Path, steps: Transitions) -> Environment | None:
    """The environment that a file's name speaks of, if the widths agree."""
    name = str(path).lower().replace("-", "").replace("_", "")
    widths = steps.observation.shape[1], steps.action.shape[1]
    found = [known for key, known in ENVIRONMENTS.items() if key in name]
    return found[0] if len(found) == 1 and (found[0].observations, found[0].actions) == widths else None


def write_arrays(path: str | Path, steps: Transitions) -> int:
    """Write an npz of the six fields; its length in bytes."""
    memory = io.BytesIO()
    np.savez_compressed(memory, allow_pickle=False, **steps._asdict())
    write_atomically(path, memory.getvalue())
    return len(memory.getvalue())


def _from_hdf5(path: Path) -> Transitions:
    with missing():
        import h5py
    try:
        with h5py.File(path, "r") as file:
            if minari_data.episode_names(file):
                return minari_data.from_file(path, file)
            return d4rl.from_file(path, file)
    except (OSError, KeyError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"{path}, which cannot be read whole ({reason:.120})", "an undamaged HDF5 file", "fetch or write it again"
        ) from None


def _from_arrays(path: Path) -> Transitions:
    try:
        with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in Transitions._fields if name in file}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"{path}, which cannot be read whole ({reason:.120})", "an undamaged npz of plain numbers"
        ) from None
    return assemble(str(path), arrays)
