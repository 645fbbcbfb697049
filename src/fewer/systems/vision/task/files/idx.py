"""The idx format of the MNIST family: a magic number, big-endian sizes, then the bytes, plain or gzipped.

A file is believed only when its header and its length agree, and no more memory is asked for than the file fills.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.systems.vision.task.files.axes import channels_first

__all__ = ["FILES", "find", "read_folder", "read_idx"]

FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_UNSIGNED_BYTE = 0x08
_LARGEST = 1 << 32  # bytes of content; a gzipped file can claim any size
_PIECE = 1 << 20


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array in an idx file of unsigned bytes, in the shape that its header states."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else path.open("rb") as stream:
            shape = _header(stream, path)
            return _content(stream, path, math.prod(shape)).reshape(shape)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: {error}", "a readable idx file", "fetch it again") from error


def _header(stream: gzip.GzipFile | BufferedReader, path: Path) -> tuple[int, ...]:
    magic = stream.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0":
        raise UserError(f"{path} begins with {magic.hex() or 'nothing'}", "the idx magic number 0000 08 and a rank")
    kind, rank = magic[2], magic[3]
    if kind != _UNSIGNED_BYTE:
        raise UserError(f"{path} holds type 0x{kind:02x}", "unsigned bytes, type 0x08")
    if not 1 <= rank <= 4:
        raise UserError(f"{path} has {rank} dimensions", "1 to 4: labels, or images with or without channels")
    sizes = stream.read(4 * rank)
    if len(sizes) < 4 * rank:
        raise UserError(f"{path} ends inside its header", f"{rank} sizes of 4 bytes", "fetch it again")
    shape = struct.unpack(f">{rank}I", sizes)
    if 0 in shape or math.prod(shape) > _LARGEST:
        raise UserError(f"{path} states the sizes {shape}", f"1 to {_LARGEST} bytes in all")
    return shape


def _content(stream: gzip.GzipFile | BufferedReader, path: Path, count: int) -> NDArray[np.uint8]:
    # Piece by piece: a header that lies must not reserve what the file does not hold.
    pieces, missing = [], count
    while missing and (piece := stream.read(min(missing, _PIECE))):
        pieces.append(piece)
        missing -= len(piece)
    if missing:
        raise UserError(f"{path} holds {count - missing} bytes of content", f"{count}, as its header states")
    if stream.read(1):
        raise UserError(f"{path} goes on after its content", f"exactly {count} bytes, as its header states")
    return np.frombuffer(b"".join(pieces), dtype=np.uint8)


def find(folder: Path, name: str) -> Path | None:
    """The file of that name, plain or gzipped, also in the spelling with a dot before idx."""
    spellings = (name, name.replace("-idx", ".idx"))
    candidates = (folder / f"{spelling}{ending}" for spelling in spellings for ending in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def read_folder(folder: Path, split: str) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """Images (count, channels, height, width) and labels (count,) of a folder with the four MNIST names."""
    paths = [find(folder, name) for name in FILES[split]]
    for path, name in zip(paths, FILES[split]):
        if path is None:
            raise UserError(
                f"{folder} without {name}", "the four idx files", "`fewer data vision --out DIR` fetches them"
            )
    images, labels = (read_idx(path) for path in paths if path is not None)
    placed = channels_first(images)
    if placed is None or labels.ndim != 1 or len(images) != len(labels):
        raise UserError(
            f"{folder} with {split} images {images.shape} and labels {labels.shape}",
            "(count, height, width) or one or three channels beside, and one label for each",
        )
    return placed, labels.astype(np.int64)
