"""`fewer reproduce`: the papers' tables and figures, whole or piece by piece."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from fewer.cli.words import offer
from fewer.core.errors import UserError
from fewer.core.registry import systems
from fewer.core.settings import either
from fewer.studies.order import SCALES

if TYPE_CHECKING:
    from fewer.studies.order import Order
    from fewer.studies.study import Result


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    offer(parser.add_argument("study", nargs="?", help="one that --list names"), studies)
    parser.add_argument("--list", action="store_true", help="all studies; of one, its pieces and what --set changes")
    scale = parser.add_argument("--scale", default="quick", help=f"{either(SCALES)} (default quick)")
    offer(scale, SCALES)
    parser.add_argument("--out", default="runs/studies", help="folder for files; one with more rows is never replaced")
    parser.add_argument(
        "--pieces", nargs="+", metavar="PIECE",
        help="make only these, or all; without it a study is put together from the pieces that lie in --out",
    )  # fmt: skip
    parser.add_argument("--data", default="", help="your files in the paper's format, instead of the scale's own data")
    claims = parser.add_argument(
        "--claims", nargs="?", const="", metavar="PAPER",
        help="every testable sentence of the papers, or of one, held against the results in --out",
    )  # fmt: skip
    offer(claims, systems)
    parser.add_argument("--estimate", action="store_true", help="only say how long each training would take here")
    parser.add_argument("--seeds", help="of the pieces: 0,1,2 (default: their own)")
    parser.add_argument("--processes", type=int, default=1, help="pieces that are made at a time")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another choice for the pieces")


def studies() -> Iterable[str]:
    """Their names."""
    from fewer.studies.order import studies

    return studies()


def order_of(arguments: argparse.Namespace) -> Order:
    """What the words of a command ask for."""
    from fewer.studies.order import Order
    from fewer.studies.pieces import Timed, silent

    if not arguments.study:
        raise UserError("no study", "its name", "see `fewer reproduce --list`")
    words = (*arguments.set, *([f"seeds={arguments.seeds}"] if arguments.seeds else []))
    log = silent if arguments.json else Timed()
    order = Order(arguments.study, arguments.scale, Path(arguments.out), log, words, arguments.data)
    if (words or arguments.processes != 1) and not (arguments.pieces or arguments.list):
        raise UserError("--seeds, --set or --processes", "--pieces", "they are for pieces alone")
    return order


def run(arguments: argparse.Namespace) -> None:
    """The table, its notes, its files."""
    from fewer.cli.show import show
    from fewer.studies.making import make_pieces
    from fewer.studies.order import studies
    from fewer.studies.pieces import listed

    if arguments.claims is not None:
        if arguments.study:
            raise UserError(f"{arguments.study} beside --claims", "a paper behind it, or none", "leave the study out")
        _show_claims(arguments.claims, Path(arguments.out), arguments.json)
        return
    if arguments.list and not arguments.study:
        show({name: study.line for name, study in studies().items()}, arguments.json)
        return
    order = order_of(arguments)
    if arguments.list:
        show(listed(order), arguments.json)
    elif arguments.estimate:
        _show_estimate(order, arguments.json)
    elif arguments.pieces:
        made = make_pieces(order, arguments.pieces, arguments.processes)
        show({"pieces": made, "out": arguments.out}, arguments.json)
    else:
        _make(order, arguments)


def _show_claims(paper: str, folder: Path, quiet: bool) -> None:
    from fewer.cli.show import show
    from fewer.studies.claims import VERDICTS, counted, ledger, records_in, told

    records = records_in(folder)
    if not records:
        raise UserError(f"no result of a study in {folder}", "some to judge claims by", "name their folder by --out")
    lines = ledger(records, paper)
    if quiet:
        show(lines, True)
        return
    for name, kinds in counted(lines).items():
        print(f"{name}: {', '.join(f'{count} {kind}' for kind, count in kinds.items() if count)}")
        print("\n".join(told(line) for line in lines if line["paper"] == name))
    print("\n".join(f"{kind}: {meaning}" for kind, meaning in VERDICTS.items()))


def _show_estimate(order: Order, quiet: bool) -> None:
    from fewer.cli.show import show
    from fewer.studies.pieces import silent
    from fewer.studies.plan import described, estimate

    found = estimate(dataclasses.replace(order, log=silent))
    each = {training["name"]: described(training) for training in found["trainings"]}
    show(found if quiet else {**each, "all": found["in_words"]}, quiet)


def _make(order: Order, arguments: argparse.Namespace) -> None:
    """The whole study; how long the paper's own sizes take is told first."""
    from fewer.studies.plan import estimate
    from fewer.studies.study import reproduce

    if order.scale == "paper" and not arguments.json:
        try:
            order.log(estimate(order)["in_words"])
        except UserError as error:  # pieces that were made elsewhere can still be put together
            order.log(f"how long it takes cannot be told here: {error}")
    _show_table(reproduce(order), arguments.out, arguments.json)


def _show_table(result: Result, out: str, quiet: bool) -> None:
    from fewer.cli.show import show

    if quiet:
        show({"title": result.title, "columns": result.columns, "rows": result.rows, "remarks": result.remarks,
             "notes": result.notes}, True)  # fmt: skip
        return
    cells = [[str(cell) for cell in row] for row in [result.columns, *result.rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(result.columns))]
    print(result.title)
    for row in cells:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip())
    for note in [*result.remarks, *result.notes]:
        print(f"- {note}")
    print(f"written to {out}")
