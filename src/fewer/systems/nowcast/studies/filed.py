"""The competition's files for the studies: every training window, and validation windows dealt out in turn.

The truth of the competition's own test and held-out windows was never published. So its validation windows, 60 of each
region-year, are dealt out: one to choose by, one to Table 1, one to Table 2, and so on.
"""

from __future__ import annotations

import functools

from torch import Tensor

from fewer.core.errors import UserError
from fewer.core.task import Data
from fewer.systems.nowcast.task.files.archive import Archive, Reading, open_archive
from fewer.systems.nowcast.task.windows import Windows

__all__ = ["Every", "judged_part", "training_windows"]


class Every:
    """Each so-many-th window of others."""

    def __init__(self, data: Data[Windows], first: int, step: int) -> None:
        self.data, self.first, self.step, self.in_memory = data, first, step, data.in_memory

    def __len__(self) -> int:
        return len(range(self.first, len(self.data), self.step))

    def take(self, index: Tensor) -> Windows:
        """The windows at a 1-D index."""
        return self.data.take(self.first + self.step * index)


@functools.lru_cache(maxsize=4)
def _opened(root: str, split: str, literal: bool) -> Archive:
    return open_archive(root, split, Reading(literal=literal))


def training_windows(root: str, *, literal: bool) -> Archive:
    """All there are; `literal`: missing pixels as the starter kit has them."""
    return _opened(root, "train", literal)


def judged_part(root: str, part: int, parts: int, *, literal: bool) -> Every:
    """One of the parts into which the validation windows are dealt out."""
    whole = _opened(root, "validation", literal)
    if len(whole) < parts:
        raise UserError(f"{len(whole)} validation windows in {root}", f"at least {parts}: to choose by, and two tables")
    return Every(whole, part, parts)
