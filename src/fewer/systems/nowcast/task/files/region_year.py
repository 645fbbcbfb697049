"""One region-year's HDF5 files of one split, read frame by frame and opened once in each process that reads."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra, UserError
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.files.frames import prepared_rain, prepared_satellite
from fewer.systems.nowcast.task.windows import FACTOR, LEADS, SEEN, Windows

__all__ = ["Source", "opened"]

_LOCK = threading.Lock()
_HANDLES: dict[tuple[int, Path], tuple[Any, Any]] = {}  # by process: a handle that a fork has copied reads garbage
_KINDS = {"f": "real", "i": "whole", "u": "whole"}  # numbers, by numpy's letter


def opened(path: Path) -> Any:
    """An HDF5 file for reading."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("no h5py", "it installed, to read HDF5", "pip install 'fewer[nowcast]'") from error
    try:
        return h5py.File(path, "r")
    except OSError as error:
        reason = "missing" if not path.exists() else str(error).splitlines()[0]
        raise UserError(f"{path}: {reason}", "a whole HDF5 file", "copy or download it again") from None


def _dataset(path: Path, key: str) -> Any:
    found = path.stat()
    state = (found.st_ino, found.st_size, found.st_mtime_ns)  # a file that was replaced is opened anew
    with _LOCK:
        before, handle = _HANDLES.get((os.getpid(), path), (None, None))
        if before != state:
            handle = opened(path)
            _HANDLES[os.getpid(), path] = state, handle
    return handle[key]


def _shape(path: Path, key: str, kinds: tuple[str, ...]) -> tuple[int, ...]:
    """Opened and closed again, so that nothing is open when workers are forked."""
    with opened(path) as file:
        try:
            held = file[key]
            kind, shape = held.dtype.kind, tuple(int(length) for length in held.shape)
        except (KeyError, AttributeError, TypeError):  # absent, a link to nowhere, a group, or without a shape
            text = f"{path.name} with {', '.join(file) or 'nothing'} in it"
            raise UserError(text, f"a dataset {key}") from None
        if kind not in kinds:
            wanted = " or ".join(dict.fromkeys(_KINDS[one] for one in kinds))
            raise UserError(f"{path.name} with {key} of type {held.dtype}", f"{wanted} numbers")
        return shape


@dataclass(frozen=True)
class Source:
    """Rows are those of the files; `radar` is None where there are no targets."""

    satellite: Path
    radar: Path | None
    keys: tuple[str, str] = ("REFL-BT", "rates.crop")
    literal: bool = False

    def shape(self) -> tuple[int, int]:
        """(rows, size), after a look at both files."""
        # whole numbers would have lost the reflectances, which lie between 0 and 1
        shape = _shape(self.satellite, self.keys[0], ("f",))
        if len(shape) != 4 or shape[1] != len(BANDS) or shape[2] != shape[3] or shape[2] % FACTOR:
            wanted = f"(rows, {len(BANDS)} bands, size, size), size a multiple of {FACTOR}"
            raise UserError(f"{self.satellite.name} with {self.keys[0]} {shape}", wanted)
        if self.radar is not None:
            found, size = _shape(self.radar, self.keys[1], ("f", "i", "u")), shape[2]
            # 2024's targets cover the satellite's whole domain at 2 km; the centre of them is what others have
            if found not in [(shape[0], 1, side, side) for side in (size, size * FACTOR)]:
                raise UserError(f"{self.radar.name} with {self.keys[1]} {found}", f"({shape[0]}, 1, {size}, {size})")
        return shape[0], shape[2]

    def image(self, row: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Standardised bands, and where any was missing."""
        return prepared_satellite(self._read(self.satellite, self.keys[0], row), literal=self.literal)

    def rain(self, row: int, size: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Rate in mm/h, and where a radar looked; unseen everywhere if there are no targets."""
        if self.radar is None:
            return np.zeros((size, size), dtype=np.float32), np.zeros((size, size), dtype=np.bool_)
        raw = self._read(self.radar, self.keys[1], row)[0]
        margin = (raw.shape[-1] - size) // 2
        return prepared_rain(raw[margin : margin + size, margin : margin + size])

    def window_(self, start: int, out: Windows) -> None:
        """Fill one sample (no batch axis) from the rows that begin at `start`."""
        for step in range(SEEN):
            image, missing = self.image(start + step)
            out.satellite[step] = torch.from_numpy(image)
            out.missing[step] = torch.from_numpy(missing)
        if self.radar is None:
            return
        for step in range(LEADS):
            rate, valid = self.rain(start + SEEN + step, out.rate.shape[-1])
            out.rate[step] = torch.from_numpy(rate)
            out.valid[step] = torch.from_numpy(valid)

    def _read(self, path: Path, key: str, row: int) -> NDArray[Any]:
        try:
            return np.asarray(_dataset(path, key)[row])
        except (OSError, RuntimeError, ValueError, IndexError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(
                f"row {row} of {path} ({str(error).splitlines()[0]})", "a whole HDF5 file", "download it again"
            ) from None
