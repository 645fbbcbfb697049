"""Where the pieces of the nowcast studies are made and kept, and the windows that all of them share."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from fewer.core.engines.plain import Plain
from fewer.core.files.run_folder import Folder
from fewer.core.task import Data
from fewer.studies.order import Log
from fewer.systems.nowcast.studies.filed import judged_part, training_windows
from fewer.systems.nowcast.studies.members import Member
from fewer.systems.nowcast.studies.scales import Scale
from fewer.systems.nowcast.task.generated.windows import Wish, generated, places
from fewer.systems.nowcast.task.settings import Settings
from fewer.systems.nowcast.task.task import Nowcast
from fewer.systems.nowcast.task.windows import Windows

__all__ = ["JUDGED", "Place", "Placed"]

JUDGED = ("validation", "test", "heldout")
Rooms = Mapping[str, Mapping[str, Tensor]]  # by split
_AT_ONCE = 1 << 18  # pixels: four windows of the competition's, seventy of 60 pixels, that alone leave a GPU idle


@dataclass(frozen=True)
class Place:
    """Where the pieces of a study are kept and trained, and on which weather."""

    out: Path
    scale: Scale
    device: str = "cpu"
    log: Log = print
    files: str = ""  # a folder in the competition's layout; empty: generated weather

    def path(self, name: str, suffix: str) -> Path:
        return self.out / "pieces" / f"nowcast-{name}.{suffix}"

    def unfinished(self, name: str) -> Folder:
        """Where a training that was cut off goes on."""
        return Folder(self.out / "unfinished" / name)

    def wish(self, split: str) -> Wish:
        """The windows of a split."""
        return Wish(split, self.scale.windows[split], self.scale.size, self.scale.seed)

    def data(self, split: str) -> Data[Windows]:
        if not self.files:
            return _windows(self.wish(split), self.device)
        if split == "train":
            return training_windows(self.files, literal=self.scale.paper)
        return judged_part(self.files, JUDGED.index(split), len(JUDGED), literal=self.scale.paper)

    @property
    def regions(self) -> list[str]:
        """Year and region of each number that windows have as their place."""
        found = training_windows(self.files, literal=self.scale.paper).places if self.files else places()
        return [f"{one.year}/{one.region}" for one in found]

    @property
    def per_batch(self) -> int:
        """Windows that are forecast at once."""
        return max(1, _AT_ONCE // self.scale.size**2)

    def rehearsed(self) -> Place:
        """The same with few windows, for who only wants to see the first updates."""
        few = {split: min(8, count) for split, count in self.scale.windows.items()}
        return dataclasses.replace(self, scale=dataclasses.replace(self.scale, windows=few))

    def engine(self, one: Member) -> Plain:
        """A member's training, ready for its first update."""
        task = Placed(self.scale.settings(one), self)
        return Plain(task, self.scale.training(one, self.device), self.scale.seed + one.seed)

    def room(self) -> Rooms:
        """For the windows of all splits, which processes draw and use together; none for files, or for too many."""
        if self.files or self.scale.paper:
            return {}
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

    def __init__(self, data: Data[Windows], device: str) -> None:
        self.data, self.device, self.in_memory = data, torch.device(device), data.in_memory

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
