"""Grey and colour pictures as PNG bytes, and how a page holds them."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray

__all__ = ["data_address", "png"]


def png(pixels: NDArray[np.uint8]) -> bytes:
    """(height, width) grey or (height, width, 3) colour."""
    from PIL import Image

    memory = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels, dtype=np.uint8)).save(memory, "PNG", optimize=True)
    return memory.getvalue()


def data_address(content: bytes) -> str:
    """For the `src` of an image inside the page; a PNG, or a GIF where something moves."""
    kind = "gif" if content.startswith(b"GIF8") else "png"
    return f"data:image/{kind};base64," + base64.b64encode(content).decode()
