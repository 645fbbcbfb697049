"""Memory for batches that is used again once nobody holds it.

A batch of eight windows is 227 MB. The kernel takes longer to hand out and clear so many fresh pages than reading them
takes, so buffers are kept. Each is lent as a view: a tensor made of it, a view of that or a graph that saved it keeps
the view alive, and when the view ends the buffer is free again.
"""

from __future__ import annotations

import threading
import weakref

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["recycled"]

_KEPT = 8  # buffers, four a batch: the batch in use and the next
_LOCK = threading.Lock()
_FREE: list[NDArray[np.float32]] = []  # the end of a view appends, at any moment and without the lock


def recycled(shape: tuple[int, ...]) -> Tensor:
    """A float32 tensor of whatever was there before."""
    with _LOCK:
        found = [place for place in range(len(_FREE)) if _FREE[place].shape == shape]
        buffer = _FREE.pop(found[-1]) if found else np.empty(shape, dtype=np.float32)
        del _FREE[:-_KEPT]  # those free for longest
    lent = buffer.view()
    weakref.finalize(lent, _FREE.append, buffer).atexit = False
    return torch.from_numpy(lent)
