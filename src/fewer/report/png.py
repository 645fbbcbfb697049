"""Grey and colour pictures as PNG bytes, with nothing but zlib."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["data_address", "png"]


def png(pixels: NDArray[np.uint8]) -> bytes:
    """(height, width) grey or (height, width, 3) colour."""
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 else 0
    rows = np.ascontiguousarray(pixels, dtype=np.uint8).reshape(height, -1)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()  # a filter byte before each row

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")


def data_address(content: bytes) -> str:
    """For the `src` of an image inside the page; a PNG, or a GIF where something moves."""
    kind = "gif" if content.startswith(b"GIF8") else "png"
    return f"data:image/{kind};base64," + base64.b64encode(content).decode()
