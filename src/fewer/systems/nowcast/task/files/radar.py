"""Rain seen by radar alone: files of any layout that `own` reads, as rates and minutes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewer.systems.nowcast.task.files.own.reading import read_images

__all__ = ["Event", "read"]


class Event(NamedTuple):
    """One domain over some time."""

    rates: NDArray[np.float32]  # (time, y, x) in mm/h, y from north to south; NaN where no radar looked, 0 where dry
    minutes: NDArray[np.float64]  # (time,), since the first
    kilometres: float  # of a pixel's side


def read(path: str | Path) -> Event:
    """A file, or a folder of files of one domain."""
    images = read_images(path)
    return Event(images.rates, images.minutes, images.grid.kilometres)
