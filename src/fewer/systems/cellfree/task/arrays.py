"""The array types of the simulator, and the random generators it draws from."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Integers", "generator"]

# the names say what is inside; numpy's own types of arithmetic results are too loose to check it
Floats = NDArray[Any]
Integers = NDArray[Any]
Bools = NDArray[Any]


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A generator of its own per purpose: access points, maps and phones must never share a stream."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])
