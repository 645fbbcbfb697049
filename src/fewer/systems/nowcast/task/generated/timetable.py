"""When generated images were taken and what each is for: the rows of the competition's csv."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from fewer.core.seed import torch_seed
from fewer.systems.nowcast.task.windows import LEADS, SEEN

__all__ = ["HEADER", "TRAINING_WINDOWS", "Event", "csv_rows", "timetable"]

HEADER = ["time", "date_str", "date", "RATE", "ACRR", "DBZH", "REFL-BT", "all_vars", "split", "split_type"]
TRAINING_WINDOWS = 8  # in one stretch of training
_STEP = timedelta(minutes=15)
_FIRST_DAY = {2019: datetime(2019, 2, 15)}  # the competition's data begins there
_WITHOUT_TARGETS = 2021  # from this year on there are only inputs


@dataclass(frozen=True)
class Event:
    """Consecutive quarters of an hour with one purpose."""

    split: str  # as in fewer: train, validation, test, heldout
    start: datetime
    available: tuple[bool, ...]  # by frame; what is not is in the csv but in no file

    @property
    def images(self) -> list[int]:
        """Frames that are rows of the satellite's file: inputs alone where the targets are secret."""
        frames = range(SEEN if self.split in ("test", "heldout") else len(self.available))
        return [frame for frame in frames if self.available[frame]]

    @property
    def scans(self) -> list[int]:
        """Frames that are rows of the radar's file."""
        return [] if self.split in ("test", "heldout") else self.images


def timetable(year: int, windows: int, seed: int) -> list[Event]:
    """`windows` events of each split, spread over the year at all hours; every second training stretch has a gap."""
    dice = random.Random(torch_seed(seed, f"timetable/{year}"))
    first = _FIRST_DAY.get(year, datetime(year, 1, 1))
    part = (datetime(year + 1, 1, 1) - first) / windows
    span, found = SEEN + LEADS, []
    splits = ("test", "heldout") if year >= _WITHOUT_TARGETS else ("train", "validation", "test", "heldout")
    for number in range(windows):
        # all four follow each other within the window's part of the year, some hours apart
        slack = part - 90 * timedelta(hours=1)
        now = first + number * part + timedelta(minutes=15 * dice.randrange(max(1, int(slack / _STEP))))
        for split in splits:
            available = [True] * (span if split == "validation" else span + LEADS)
            if split == "train":
                available = [True] * (span + TRAINING_WINDOWS - 1)
                if number % 2 == 0:
                    available = [True] * 6 + [False] * dice.randint(1, 3) + available
            found.append(Event(split, now, tuple(available)))
            now += (len(available) + dice.randint(8, 24)) * _STEP
    return found


def csv_rows(events: Iterable[Event]) -> list[list[str]]:
    """One row for every quarter of an hour of the events."""
    rows = []
    for event in events:
        for frame, available in enumerate(event.available):
            when = event.start + frame * _STEP
            split, kind = _words(event.split, frame) if available else ("-", "-")
            flag = str(int(available))
            times = [f"{when:%H%M%S}", f"{when:%Y%m%d}", f"{when:%Y-%m-%d}"]
            rows.append([*times, flag, "1", "1", "1", flag, split, kind])
    return rows


def _words(split: str, frame: int) -> tuple[str, str]:
    """The csv's own: split and split_type."""
    if split == "train":
        return "training", "-"
    part = "in" if frame < SEEN else "target" if frame < SEEN + LEADS else "buffer"
    return split, f"{split}_{part}"
