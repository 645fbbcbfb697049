"""Memory for batches that is used again once nobody holds it.

A batch of eight windows is 227 MB. The kernel takes longer to hand out and clear so many fresh pages than reading them
takes, so arrays are kept. A tensor made of an array counts as a reference to it for as long as the tensor, a view of it
or a graph that saved it lives; an array with no such reference is free.
"""

from __future__ import annotations

import sys
import threading

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["recycled"]

_KEPT = 8  # arrays, four a batch: the batch in use and the next
_LOCK = threading.Lock()


def _held(arrays: list[NDArray[np.float32]], position: int) -> int:
    array = arrays[position]
    return sys.getrefcount(array)


_UNHELD = _held([np.empty(1, dtype=np.float32)], 0)  # what the list and the count itself account for
_ARRAYS: list[NDArray[np.float32]] = []


def recycled(shape: tuple[int, ...]) -> Tensor:
    """A float32 tensor of whatever was there before."""
    with _LOCK:
        for position in range(len(_ARRAYS)):
            if _ARRAYS[position].shape == shape and _held(_ARRAYS, position) <= _UNHELD:
                _ARRAYS.append(_ARRAYS.pop(position))
                return torch.from_numpy(_ARRAYS[-1])
        _ARRAYS.append(np.empty(shape, dtype=np.float32))
        del _ARRAYS[:-_KEPT]  # the least recently used; whoever still holds it keeps it alive
        return torch.from_numpy(_ARRAYS[-1])
