"""Making pieces of a study, one after the other or several at a time."""

from __future__ import annotations

from collections.abc import Sequence

from fewer.core.errors import UserError
from fewer.core.settings import nearest
from fewer.studies.order import Order
from fewer.studies.pieces import pieces_of
from fewer.studies.processes import make_together

__all__ = ["make_pieces"]


def make_pieces(order: Order, names: Sequence[str], processes: int = 1) -> list[str]:
    """Make the named pieces, several at a time if asked for; their names."""
    pieces = pieces_of(order)
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
    for late in (False, True):
        if part := [name for name in wanted if pieces.every[name].late is late]:
            make_together(order, part, processes)
    return wanted
