"""Packed frames: what HDF5 takes long to give, stored ready to use, so that an epoch does not wait for the disk.

Two files a region-year and split, one fixed-size record a row: `images` holds the standardised bands in float16 and a
byte a pixel where any was missing, `rain` the rate in float16 and a byte a pixel where a radar looked. `sums` holds a
checksum a record. A record is filled when it is first asked for; one that was never written, was cut off by a kill or
was damaged does not match its checksum and is read from HDF5 again. If the HDF5 files change, everything is.

float16 keeps 11 bits: a band is off by at most 1/2048 of its distance from the mean (0.018 K at two deviations of
IR_108), a rate by 1/2048 of itself, and never across 0 or 0.2 mm/h.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fewer.core.files.atomic import locked, refusal, write_atomically
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.files.region_year import Source
from fewer.systems.nowcast.task.windows import LEADS, SEEN, Windows

__all__ = ["Cached", "packed_rate"]

_VERSION = 1
_LOCK = threading.Lock()
_RAIN = np.float32(0.2)


class Records:
    """Rows of `width` bytes in one file, each believed only while its checksum is right."""

    def __init__(self, path: Path, rows: int, width: int) -> None:
        self.path, self.rows, self.width = path, rows, width
        for file, length in ((path, rows * width), (self.sums_path, rows * 8)):
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                if os.fstat(descriptor).st_size != length:
                    os.truncate(descriptor, length)  # sparse: takes no room until it is written
            finally:
                os.close(descriptor)
        self.bytes = np.memmap(path, dtype=np.uint8, mode="r+", shape=(rows, width))
        self.sums = np.memmap(self.sums_path, dtype=np.uint64, mode="r+", shape=(rows,))
        self.good = np.zeros(rows, dtype=np.bool_)  # checked since this process opened the file

    @property
    def sums_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.sums")

    def whole(self, row: int) -> bool:
        """Whether a record is as it was written; looked at once a process."""
        if not self.good[row]:
            self.good[row] = self.sums[row] != 0 and self.sums[row] == _checksum(self.bytes[row])
        return bool(self.good[row])

    def write(self, row: int, record: NDArray[np.uint8]) -> None:
        """The record, then its checksum; by system call, because a full disk under a memory map kills the process."""
        total = np.array([_checksum(record)])
        for path, content, offset in ((self.path, record, row * self.width), (self.sums_path, total, row * 8)):
            descriptor = os.open(path, os.O_WRONLY)
            try:
                if os.pwrite(descriptor, content.tobytes(), offset) != content.nbytes:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as error:
                raise refusal(error, path) from error
            finally:
                os.close(descriptor)
        self.good[row] = True


class Cached:
    """A source's frames, packed; reads the source only for what it does not have."""

    def __init__(self, source: Source, folder: Path) -> None:
        self.source, self.folder = source, folder
        self.rows, self.size = source.shape()
        self._process = -1  # opened when first read, and in each process anew
        self._images: Records | None = None
        self._rain: Records | None = None

    def window_(self, start: int, out: Windows) -> None:
        """Fill one sample (no batch axis) from the rows that begin at `start`."""
        images, rain = self._open()
        pixels, bands = self.size**2, len(BANDS)
        last = start + SEEN
        self._ensure(images, start, last)
        held = torch.from_numpy(images.bytes[start:last])
        wide = 2 * bands * pixels
        out.satellite.view(SEEN, bands * pixels).copy_(held[:, :wide].view(torch.float16))
        out.missing.view(SEEN, pixels).copy_(held[:, wide : wide + pixels])
        if rain is None:
            return
        self._ensure(rain, last, last + LEADS)
        held = torch.from_numpy(rain.bytes[last : last + LEADS])
        out.rate.view(LEADS, pixels).copy_(held[:, : 2 * pixels].view(torch.float16))
        out.valid.view(LEADS, pixels).copy_(held[:, 2 * pixels : 3 * pixels])

    def fill(self, start: int, end: int) -> int:
        """Make sure of rows `start` to `end`; how many had to be read."""
        images, rain = self._open()
        return self._ensure(images, start, end) + (self._ensure(rain, start, end) if rain is not None else 0)

    def _ensure(self, records: Records, start: int, end: int) -> int:
        read = 0
        for row in range(start, end):
            if not records.whole(row):
                records.write(row, self._packed(records, row))
                read += 1
        return read

    def _packed(self, records: Records, row: int) -> NDArray[np.uint8]:
        if records is self._images:
            image, missing = self.source.image(row)
            parts = (torch.from_numpy(image).half().numpy(), missing)  # numpy takes five times as long
        else:
            rate, valid = self.source.rain(row, self.size)
            parts = (packed_rate(rate), valid)
        record = np.zeros(records.width, dtype=np.uint8)
        content = np.concatenate([np.ascontiguousarray(part).view(np.uint8).reshape(-1) for part in parts])
        record[: len(content)] = content
        return record

    def _open(self) -> tuple[Records, Records | None]:
        with _LOCK:
            if self._images is None or self._process != os.getpid():
                self._open_()
            assert self._images is not None
            return self._images, self._rain

    def _open_(self) -> None:
        pixels = self.size**2
        wanted = self._identity()
        index = self.folder / "index.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(self.folder / ".lock", "w") as lock:  # processes that start together make it once
                locked(lock, wait=True)
                if not index.is_file() or index.read_bytes() != wanted:
                    for name in ("images", "rain"):
                        (self.folder / f"{name}.sums").unlink(missing_ok=True)  # without it nothing is believed
                    write_atomically(index, wanted)
                self._images = Records(self.folder / "images", self.rows, _padded((2 * len(BANDS) + 1) * pixels))
                if self.source.radar is not None:
                    self._rain = Records(self.folder / "rain", self.rows, _padded(3 * pixels))
        except OSError as error:
            raise refusal(error, self.folder) from error
        self._process = os.getpid()

    def _identity(self) -> bytes:
        """What the packed frames depend on: another version, option or source makes them void."""
        sources = [path for path in (self.source.satellite, self.source.radar) if path is not None]
        stats = {path.name: [path.stat().st_size, path.stat().st_mtime_ns] for path in sources}
        content: dict[str, Any] = {
            "version": _VERSION, "rows": self.rows, "size": self.size, "literal": self.source.literal, "files": stats,
            "bands": [list(band) for band in BANDS],
        }  # fmt: skip
        return (json.dumps(content, indent=1) + "\n").encode()


def _checksum(record: NDArray[np.uint8]) -> np.uint64:
    """A sum of words, each with an odd weight of its own, modulo 2^64: a change of one word always shows.

    Four times as fast as zlib.crc32, which would take longer than everything else when frames are first read.
    """
    words = record.view(np.uint64)
    return np.dot(words, _weights(len(words))) + np.uint64(1)  # type: ignore[no-any-return]


@lru_cache(maxsize=4)
def _weights(count: int) -> NDArray[np.uint64]:
    return np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)


def _padded(width: int) -> int:
    return -(-width // 64) * 64  # a cache line


def packed_rate(rate: NDArray[np.float32]) -> NDArray[np.float16]:
    """float16 on the same side of 0 and of 0.2 mm/h as the rate itself."""
    packed = rate.astype(np.float16)
    up = ((rate >= _RAIN) & (packed.astype(np.float32) < _RAIN)) | ((rate > 0) & (packed == 0))
    packed[up] = np.nextafter(packed[up], np.float16(np.inf))
    down = (rate < _RAIN) & (packed.astype(np.float32) >= _RAIN)
    packed[down] = np.nextafter(packed[down], np.float16(0))
    return packed
