"""Images as people have them, as a pack takes them; numpy alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewer.core.errors import UserError

__all__ = ["as_pixels"]


def as_pixels(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pixels from 0 to 1; they may be bytes, as they may be in training."""
    if values.dtype == np.uint8:
        return values.astype(np.float32) / 255
    if values.size and (values.min() < 0 or values.max() > 1):
        raise UserError(f"pixels from {values.min()} to {values.max()}", "0 to 1, or unsigned bytes", "divide by 255")
    return values
