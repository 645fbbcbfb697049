"""Where the channels of images stand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["channels_first"]


def channels_first(images: NDArray[np.generic]) -> NDArray[np.generic] | None:
    """(count, channels, height, width) from that, from channels last or from none; nothing if none fits."""
    if images.ndim == 3:
        return images[:, None]
    if images.ndim == 4 and images.shape[-1] in (1, 3):
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    if images.ndim == 4 and images.shape[1] in (1, 3):
        return images
    return None
