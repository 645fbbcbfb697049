"""The German weather service's RADOLAN composites in their binary form: a line of text, then one number a pixel.

Rows run from south to north. A two-byte number has 12 bits of value and flags above them; a one-byte number is an
echo in half decibels.
"""

from __future__ import annotations

import bz2
import gzip
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.own.grid import Grid, from_corner
from fewer.systems.nowcast.task.files.own.images import Channel, Frame
from fewer.systems.nowcast.task.files.own.quantities import RAIN, as_rates

__all__ = ["frames", "looks_like"]

_END = b"\x03"
_HEADER = re.compile(rb"^[A-Z][A-Z0-9]\d{6}\d{5}\d{4}BY")
_LONGEST = 4096
_FINEST = 1e-4  # step of a value
_LARGEST = 1 << 27  # bytes when unpacked
_SPHERE = "+proj=stere +lat_0=90 +lat_ts=60 +lon_0=10 +x_0=0 +y_0=0 +a=6370040 +b=6370040 +units=m +no_defs"
_WGS84 = "+proj=stere +lat_0=90 +lat_ts=60 +lon_0=10 +x_0=0 +y_0=0 +ellps=WGS84 +units=m +no_defs"
# by rows and columns: the projection and its lower left corner in metres
_GRIDS = {
    (900, 900): (_SPHERE, (-523462.2, -4658644.7)),
    (1100, 900): (_SPHERE, (-443462.2, -4758644.7)),
    (1500, 1400): (_SPHERE, (-673462.2, -5008644.7)),
    (1200, 1100): (_WGS84, (-543696.8, -4822588.9)),
}
_VALUE, _MISSING, _NEGATIVE, _CLUTTER = 0x0FFF, 0x2000, 0x4000, 0x8000
_ECHO_CLUTTER, _ECHO_MISSING = 249, 250


class _Header(NamedTuple):
    product: str
    time: np.datetime64
    shape: tuple[int, int]
    precision: float
    hours: float


def looks_like(first: bytes) -> bool:
    """From the first bytes of a file, unpacked."""
    return bool(_HEADER.match(first))


def frames(path: Path) -> list[Frame]:
    """Its one image; `.gz` and `.bz2` are unpacked."""
    content = _content(path)
    end = content.find(_END, 0, _LONGEST)
    if end < 0:
        raise UserError(f"{path.name} without the end of a header", "a RADOLAN composite", "download it again")
    header = _header(path, content[:end].decode("ascii", errors="replace"))
    raw = content[end + 1 :]
    count = header.shape[0] * header.shape[1]
    width = {count: 1, 2 * count: 2}.get(len(raw))
    if width is None:
        raise UserError(
            f"{path.name} with {len(raw)} bytes for {header.shape[0]} x {header.shape[1]} pixels", "1 or 2 a pixel",
            "download it again",
        )  # fmt: skip
    codes = np.frombuffer(raw, np.uint8 if width == 1 else "<u2").reshape(header.shape)[::-1]
    rates = _echoes(codes, path) if width == 1 else _amounts(codes, header, path)
    return [Frame(rates[None], header.time, (Channel(*RAIN),), _grid(header.shape, path), path.name)]


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            with gzip.open(path) as file:
                return file.read(_LARGEST)
        if data[:3] == b"BZh":
            with bz2.open(path) as file:
                return file.read(_LARGEST)
    except (OSError, EOFError, ValueError) as error:
        raise UserError(f"{path.name} ({error})", "a whole file", "download it again") from None
    return data


def _header(path: Path, text: str) -> _Header:
    """`RW021950100000814BY1620130VS 3SW   2.13.1PR E-01INT  60GP 900x 900MS ...`."""
    try:
        day, hour, minute, month, year = text[2:4], text[4:6], text[6:8], text[13:15], text[15:17]
        time = np.datetime64(f"20{year}-{month}-{day}T{hour}:{minute}:00", "s")
        rows, columns = re.search(r"GP\s*(\d+)\s*x\s*(\d+)", text).groups()  # type: ignore[union-attr]
        precision = re.search(r"PR\s*E([-+]\d+)", text)
        minutes = re.search(r"INT\s*(\d+)", text)
    except (ValueError, AttributeError):
        raise UserError(f"{path.name} with the header {text[:60]!r}", "RADOLAN's product, time and GP") from None
    scale = 10.0 ** int(precision[1]) if precision else 1.0
    if not _FINEST <= scale <= 1.0:
        raise UserError(f"{path.name} with values in steps of {scale:g}", f"{_FINEST:g} to 1", "download it again")
    return _Header(text[:2], time, (int(rows), int(columns)), scale, int(minutes[1]) / 60 if minutes else 1.0)


def _amounts(codes: NDArray[np.uint16], header: _Header, path: Path) -> NDArray[np.float32]:
    """Sums over the product's interval, in steps of its precision in mm; clutter is no measurement."""
    values = (codes & _VALUE) * header.precision
    values = np.where(codes & _NEGATIVE, -values, values)
    values[(codes & (_MISSING | _CLUTTER)) > 0] = np.nan
    return as_rates(values, "mm", hours=header.hours, what=path.name)


def _echoes(codes: NDArray[np.uint8], path: Path) -> NDArray[np.float32]:
    values = codes / 2.0 - 32.5
    rates = as_rates(values, "dBZ", hours=None, what=path.name)
    rates[codes == 0] = 0.0
    rates[(codes == _ECHO_CLUTTER) | (codes >= _ECHO_MISSING)] = np.nan
    return rates


def _grid(shape: tuple[int, int], path: Path) -> Grid:
    if shape not in _GRIDS:
        known = ", ".join(f"{rows} x {columns}" for rows, columns in _GRIDS)
        raise UserError(f"{path.name} of {shape[0]} x {shape[1]} pixels", f"a composite of {known}")
    projection, (left, bottom) = _GRIDS[shape]
    return from_corner(projection, (left, bottom + 1000.0 * shape[0]), pixel=(1000.0, 1000.0), shape=shape)
