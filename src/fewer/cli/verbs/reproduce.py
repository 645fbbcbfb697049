"""`fewer reproduce`: the papers' tables and figures."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from fewer.cli.words import offer
from fewer.core.errors import UserError


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    offer(parser.add_argument("study", nargs="?", help="one that --list names"), studies)
    parser.add_argument("--list", action="store_true", help="what there is")
    scale = parser.add_argument("--scale", default="quick", help="quick (minutes, 2 cores) or full (a CUDA GPU)")
    offer(scale, ("quick", "full"))
    parser.add_argument("--out", default="runs/studies", help="folder for files; one with more rows is never replaced")


def studies() -> Iterable[str]:
    """Their names."""
    from fewer.studies.study import studies

    return studies()


def run(arguments: argparse.Namespace) -> None:
    """The table, its notes, its files."""
    import sys

    from fewer.cli.show import show
    from fewer.studies.study import reproduce, studies

    if arguments.list:
        show({name: line for name, (_, line) in studies().items()}, arguments.json)
        return
    if not arguments.study:
        raise UserError("no study", "its name", "see `fewer reproduce --list`")
    quiet = arguments.json
    result = reproduce(
        arguments.study, arguments.scale, Path(arguments.out),
        (lambda line: None) if quiet else lambda line: print(line, file=sys.stderr, flush=True),
    )  # fmt: skip
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
    print(f"written to {arguments.out}")
