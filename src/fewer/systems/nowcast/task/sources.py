"""Where the windows of a split come from: the user's own files, the competition's, or generated weather."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from fewer.core.errors import UserError
from fewer.core.task import Data
from fewer.systems.nowcast.task.files.own.table import TABLE
from fewer.systems.nowcast.task.settings import Settings
from fewer.systems.nowcast.task.windows import Geometry, Windows

__all__ = ["Joined", "is_own", "open_split", "opened_size", "own_geometry"]


class Joined:
    """Data one after another."""

    def __init__(self, parts: Sequence[Data[Windows]]) -> None:
        self.parts, self.in_memory = tuple(parts), all(part.in_memory for part in parts)

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def take(self, index: Tensor) -> Windows:
        """The samples at a 1-D index."""
        taken, order, begin = [], [], 0
        for part in self.parts:
            mine = ((index >= begin) & (index < begin + len(part))).nonzero()[:, 0]
            if len(mine):
                taken.append(part.take(index[mine] - begin))
                order.append(mine)
            begin += len(part)
        back = torch.cat(order).argsort()
        return Windows(*(torch.cat(leaves)[back] for leaves in zip(*taken)))


def is_own(settings: Settings) -> bool:
    """Whether the data is a folder of the user's own files rather than of the competition's."""
    from fewer.systems.nowcast.task.files.layout import is_competition

    folder = Path(settings.data)
    return bool(settings.data) and folder.is_dir() and ((folder / TABLE).is_file() or not is_competition(folder))


def own_geometry(settings: Settings) -> Geometry:
    """As the files have it."""
    from fewer.systems.nowcast.task.files.own.windows import opened

    return opened(settings).geometry


def opened_size(settings: Settings) -> int:
    """Pixels of a window."""
    from fewer.systems.nowcast.task.files.own.windows import opened

    return opened(settings).size


def open_split(settings: Settings, split: str) -> Data[Windows]:
    """The windows of `train`, `validation` or `test`."""
    if is_own(settings):
        from fewer.systems.nowcast.task.files.own.windows import opened

        return opened(settings).split(split)
    if settings.data:
        return _archive(settings, split)
    from fewer.systems.nowcast.task.generated.windows import generated
    from fewer.systems.nowcast.task.weather.regimes import CORE

    count = {
        "train": settings.train_windows,
        "validation": settings.validation_windows,
        "test": settings.test_windows,
    }[split]
    regions = settings.regions or CORE
    return generated(
        split, count=count, size=settings.side, seed=settings.weather_seed, regions=regions,
        device=settings.weather_device,
    )  # fmt: skip


def _archive(settings: Settings, split: str) -> Data[Windows]:
    from fewer.systems.nowcast.task.files.archive import Reading, open_archive

    reading = Reading(settings.regions, settings.years, literal=settings.literal, cache=settings.cache)
    data = open_archive(settings.data, split, reading)
    if settings.size and settings.size != data.size:
        raise UserError(
            f"size {settings.size} for {settings.data}, which has {data.size}", "the folder's", "leave size out"
        )
    if settings.augment and data.size % 12:
        raise UserError(f"augment with size {data.size}", "a multiple of 12", "leave augment out")
    return data
