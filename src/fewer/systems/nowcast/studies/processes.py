"""Pieces of the nowcast studies several at a time on one device, by processes that share their windows.

A step of a few small windows leaves most of a GPU idle, and drawing a window takes about as long as learning from it:
each process draws its part of the windows into one memory, then all take one piece after another.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing import parent_process
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing import get_context

from fewer.core.errors import UserError
from fewer.studies.study import Log
from fewer.systems.nowcast.studies.pieces import JUDGED, Place, run_piece

__all__ = ["run_together", "timed"]

_LOOK = 0.2  # seconds between looks at the processes
_THREADS = 1


def timed(begin: float) -> Log:
    """Lines with the seconds since then, by the clock that all processes share."""

    def log(line: str) -> None:
        print(f"{time.monotonic() - begin:7.1f} s  {line}", flush=True)

    return log


def run_together(names: Sequence[str], place: Place, processes: int, begin: float) -> int:
    """Make the pieces, the first ones first; the exit code: 0 if all were made."""
    rooms = {split: place.wish(split).room(place.device) for split in ("train", *JUDGED)}
    if place.device == "cpu":
        for room in rooms.values():
            for tensor in room.values():
                tensor.share_memory_()
    context = get_context("spawn")
    drawn, queue = context.Barrier(processes), context.SimpleQueue()
    for name in [*names, *[""] * processes]:
        queue.put(name)
    silent = dataclasses.replace(place, log=print)
    workers = [
        context.Process(target=_work, args=(part, processes, silent, rooms, (drawn, queue), begin))
        for part in range(processes)
    ]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        if any(worker.exitcode for worker in workers):
            drawn.abort()  # none waits for windows that nobody draws
        time.sleep(_LOOK)
    return max(abs(worker.exitcode or 0) for worker in workers)


def _work(
    part: int,
    parts: int,
    place: Place,
    rooms: Mapping[str, Mapping[str, Tensor]],
    shared: tuple[Any, Any],
    begin: float,
) -> None:
    """What one process does."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(_THREADS)
    drawn, queue = shared
    place = dataclasses.replace(place, log=timed(begin))
    for split, room in rooms.items():
        place.wish(split).draw_(room, part, parts)
    if place.device != "cpu":
        torch.cuda.synchronize()
    drawn.wait()
    for split, room in rooms.items():
        place.hold_(split, room)
    if part == 0:
        place.log(f"windows drawn by {parts} processes")
    while name := queue.get():
        try:
            run_piece(name, place)
        except UserError as error:
            print(error, file=sys.stderr)
            sys.exit(2)
        place.log(f"{name} done")


def _end_with_parent() -> None:
    """Nobody trains on for a study that was killed."""
    if (parent := parent_process()) is not None:
        parent.join()
    os._exit(1)
