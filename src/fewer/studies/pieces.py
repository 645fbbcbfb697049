"""Pieces: parts of a study that are made by themselves and kept, so that it can be made bit by bit.

A GPU is often lent for minutes only. `fewer reproduce NAME --pieces PIECE... --out DIR` makes some pieces of a study:
one that is finished is only found, one that was cut off goes on where it was saved. `fewer reproduce NAME --out DIR`
puts the study together from what is there. A system names the function that lists a study's pieces in
`Study.pieces`; each piece keeps itself, in the files that its study reads.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fewer.core.errors import UserError
from fewer.core.settings import describe, nearest
from fewer.core.system import imported
from fewer.studies.order import Order, studies

__all__ = ["Piece", "Pieces", "Shared", "Timed", "choice", "listed", "pieces_of", "silent"]


@dataclass(frozen=True)
class Piece:
    """One part of a study."""

    line: str  # what it is, or what it costs
    make: Callable[[], object]  # finds it, goes on with it or makes it
    whole: bool = True  # one of `all`
    late: bool = False  # needs what the others leave


class Shared(Protocol):
    """What processes that make pieces beside each other hold together, such as data that takes long to draw."""

    def room(self) -> Any:
        """Memory that can be sent to other processes."""

    def fill_(self, room: Any, part: int, parts: int) -> None:
        """This process's part of it."""

    def hold_(self, room: Any) -> None:
        """Use it, now that all parts are there."""


@dataclass(frozen=True)
class Pieces:
    """All pieces of a study, in the order in which `all` makes them."""

    every: Mapping[str, Piece]
    choices: type[Any]  # settings whose fields `--set` may change
    shared: Shared | None = None


def pieces_of(order: Order) -> Pieces:
    """What there is to make of a study."""
    if not order.asked.pieces:
        some = [name for name, study in studies().items() if study.pieces]
        raise UserError(f"pieces of {order.study}", "a study that has some", nearest(order.study, some))
    found: Pieces = imported(order.asked.pieces)(order)
    return found


def listed(order: Order) -> dict[str, str]:
    """Each piece, then what else may be chosen, in a line."""
    pieces = pieces_of(order)
    choices = {f"--set {name}=": help for name, _, _, help in describe(pieces.choices)}
    return {name: piece.line for name, piece in pieces.every.items()} | choices


@dataclass(frozen=True)
class Timed:
    """Lines with the seconds since the beginning, by the clock that all processes share."""

    begin: float = field(default_factory=time.monotonic)

    def __call__(self, line: str) -> None:
        print(f"{time.monotonic() - self.begin:7.1f} s  {line}", file=sys.stderr, flush=True)


def silent(line: str) -> None:
    """Nobody listens."""


def choice(default: Any, help: str) -> Any:
    """A field of a study's choices."""
    return dataclasses.field(default=default, metadata={"help": help})
