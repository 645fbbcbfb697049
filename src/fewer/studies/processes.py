"""Pieces of a study several at a time on one device, by processes that share what the study says they can.

A step of a small network leaves most of a GPU idle, and the data may take as long to draw as to learn from: each
process draws its part into one memory, then all take one piece after another.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import parent_process
from typing import Any

import torch
from torch.multiprocessing import get_context

from fewer.core.errors import UserError
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, pieces_of

__all__ = ["make_together"]

_MINE: dict[str, Piece] = {}  # in a process that makes pieces


def make_together(order: Order, names: Sequence[str], processes: int) -> None:
    """Make the pieces, the first ones first; a mistake in any of the processes is told here."""
    shared, processes = pieces_of(order).shared, min(processes, len(names))
    context = get_context("spawn")
    parts, filled = context.SimpleQueue(), context.Barrier(processes)
    for part in range(processes):
        parts.put((part, processes))
    room = None if shared is None else shared.room()
    with ProcessPoolExecutor(processes, context, _begin, (order, room, parts, filled)) as pool:
        for name, mistake in zip(names, pool.map(_make, names)):
            if mistake:
                raise UserError(*mistake)
            order.log(f"{name} done")


def _begin(order: Order, room: Any, parts: Any, filled: Any) -> None:
    """What a process does first."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    pieces = pieces_of(order)
    _MINE.update(pieces.every)
    if pieces.shared is not None:
        pieces.shared.fill_(room, *parts.get())
        filled.wait()
        pieces.shared.hold_(room)


def _make(name: str) -> tuple[str, str, str] | None:
    """A user's mistake comes back in its parts: the error itself cannot be sent."""
    try:
        _MINE[name].make()
    except UserError as error:
        return error.given, error.expected, error.cure
    return None


def _end_with_parent() -> None:
    """Nobody trains on for a study that was killed."""
    if (parent := parent_process()) is not None:
        parent.join()
    os._exit(1)
