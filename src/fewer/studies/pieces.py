"""Pieces: parts of a study that are made by themselves and kept, so that it can be made bit by bit.

A GPU is often lent for minutes only. `fewer reproduce NAME --pieces PIECE... --out DIR` makes some pieces of a study:
one that is finished is only found, one that was cut off goes on where it was saved. `fewer reproduce NAME --out DIR`
puts the study together from what is there. A system names the function that lists a study's pieces in
`System.pieces`; each piece keeps itself, in the files that its study reads.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fewer.core.errors import UserError
from fewer.core.registry import systems
from fewer.core.settings import describe, nearest
from fewer.core.system import imported
from fewer.studies.study import Log, check

__all__ = ["Order", "Piece", "Pieces", "Shared", "Timed", "choice", "make_pieces", "silent"]


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


@dataclass(frozen=True)
class Order:
    """Pieces as somebody asks for them; it can be sent to other processes if its log can."""

    study: str
    scale: str
    out: Path
    log: Log = print
    words: tuple[str, ...] = ()  # key=value, choices of the study's own

    def pieces(self) -> Pieces:
        """What there is to make."""
        check(self.study, self.scale)
        places = {name: place for system in systems().values() for name, place in system.pieces.items()}
        if self.study not in places:
            raise UserError(f"pieces of {self.study}", "a study that has some", nearest(self.study, list(places)))
        found: Pieces = imported(places[self.study])(self)
        return found

    def listed(self) -> dict[str, str]:
        """Each piece, then what else may be chosen, in a line."""
        pieces = self.pieces()
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


def make_pieces(order: Order, names: Sequence[str], processes: int = 1) -> list[str]:
    """Make the named pieces, several at a time if asked for; their names."""
    pieces = order.pieces()
    for name in names:
        if name not in (*pieces.every, "all"):
            cure = nearest(name, list(pieces.every))
            raise UserError(f"piece {name!r}", f"one that `fewer reproduce {order.study} --list` names, or all", cure)
    if processes < 1:
        raise UserError(f"--processes {processes}", "at least one")
    wanted = list(dict.fromkeys(names))
    if "all" in names:
        wanted = [name for name, piece in pieces.every.items() if piece.whole or name in names]
    if processes == 1:
        for name in wanted:
            pieces.every[name].make()
            order.log(f"{name} done")
        return wanted
    from fewer.studies.processes import make_together

    for late in (False, True):
        if part := [name for name in wanted if pieces.every[name].late is late]:
            make_together(order, part, processes)
    return wanted
