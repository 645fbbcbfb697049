"""The array types of the simulator, and the random generators it draws from."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Integers", "generator"]

Floats = NDArray[np.floating]
Integers = NDArray[np.integer]
Bools = NDArray[np.bool_]


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A generator of its own per purpose: access points, maps and phones must never share a stream."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])
