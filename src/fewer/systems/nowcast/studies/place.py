"""Where the pieces of the nowcast studies are made and kept, and the windows that all of them share."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from fewer.core.engines.base import Training
from fewer.core.files.run_folder import Folder
from fewer.core.task import Data
from fewer.studies.order import Log
from fewer.systems.nowcast.studies.members import SCALES, Member, Scale
from fewer.systems.nowcast.task.generated.windows import Wish, generated
from fewer.systems.nowcast.task.settings import Settings
from fewer.systems.nowcast.task.task import Nowcast
from fewer.systems.nowcast.task.windows import Windows

__all__ = ["JUDGED", "Place", "Placed"]

JUDGED = ("validation", "test", "heldout")
Rooms = Mapping[str, Mapping[str, Tensor]]  # by split
_AT_ONCE = 1 << 18  # pixels: four windows of the competition's, seventy of 60 pixels, that alone leave a GPU idle


@dataclass(frozen=True)
class Place:
    """Where the pieces of a study are kept and trained."""

    out: Path
    scale: Scale = SCALES["quick"]
    device: str = "cpu"
    log: Log = print

    def path(self, name: str, suffix: str) -> Path:
        return self.out / "pieces" / f"nowcast-{name}.{suffix}"

    def unfinished(self, name: str) -> Folder:
        """Where a training that was cut off goes on."""
        return Folder(self.out / "unfinished" / name)

    def wish(self, split: str) -> Wish:
        """The windows of a split."""
        return Wish(split, self.scale.windows[split], self.scale.size, self.scale.seed)

    def data(self, split: str) -> Data[Windows]:
        return _windows(self.wish(split), self.device)

    @property
    def per_batch(self) -> int:
        """Windows that are forecast at once."""
        return max(1, _AT_ONCE // self.scale.size**2)

    def training(self, one: Member) -> Training:
        """How a member is trained here."""
        scale, precision = self.scale, one.precision or self.scale.precision
        steps, optimizer = max(scale.samples // scale.batch, 1), scale.optimizer(one)
        return Training(steps, scale.batch, optimizer, self.device, precision=precision, compile=scale.compile)

    def room(self) -> Rooms:
        """For the windows of all splits, which processes draw and use together."""
        found = {split: self.wish(split).room(self.device) for split in ("train", *JUDGED)}
        for tensor in (tensor for room in found.values() for tensor in room.values()):
            tensor.share_memory_()  # on a GPU it is already
        return found

    def fill_(self, room: Rooms, part: int, parts: int) -> None:
        """Draw a part of the windows."""
        for split, packed in room.items():
            self.wish(split).draw_(packed, part, parts)
        if self.device != "cpu":
            torch.cuda.synchronize()

    def hold_(self, room: Rooms) -> None:
        """Windows that were drawn together, for all pieces of this process."""
        for split, packed in room.items():
            _HELD[self.wish(split), self.device] = self.wish(split).data(packed)


class _Moved:
    """Tensors on a GPU that may be asked for by numbers on the CPU."""

    in_memory = True

    def __init__(self, data: Data[Windows], device: str) -> None:
        self.data, self.device = data, torch.device(device)

    def __len__(self) -> int:
        return len(self.data)

    def take(self, index: Tensor) -> Windows:
        return self.data.take(index.to(self.device))


_HELD: dict[tuple[Wish, str], Data[Windows]] = {}


@functools.lru_cache(maxsize=4)
def _windows(wish: Wish, device: str) -> Data[Windows]:
    """Made once for all pieces of a process."""
    if (found := _HELD.get((wish, device))) is None:
        found = generated(wish.split, count=wish.count, size=wish.size, seed=wish.seed, device=device)
    return found if device == "cpu" else _Moved(found, device)


class Placed(Nowcast):
    """The task on windows that all pieces share, made where the training runs."""

    def __init__(self, settings: Settings, place: Place) -> None:
        super().__init__(settings)
        self.place = place

    def _split(self, split: str) -> Data[Windows]:
        return self.place.data(split)
