"""`fewer report`: finished runs as one page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fewer.cli.words import add_attack


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("run", nargs="+", help="finished run folders, or the folder of `fewer smallest`")
    parser.add_argument("-o", "--out", default="report.html")
    parser.add_argument("--title", default="", help="above the page; else the names of what is shown")
    add_attack(parser, "repeatable")
    parser.add_argument("--compare", action="store_true", help="say in words which differences between runs are real")
    parser.add_argument("--limit", type=int, default=500, help="test samples to attack")


def run(arguments: argparse.Namespace) -> None:
    """Write the page, print its path."""
    from fewer.cli.show import show
    from fewer.core.files.atomic import write_atomically
    from fewer.report.certainty.compare import verdicts
    from fewer.report.frontier import FRONTIER, frontier_chapter
    from fewer.report.runs import measured_of, page_from
    from fewer.run.load import load

    searches = [Path(path) for path in arguments.run if (Path(path) / FRONTIER).exists()]
    runs = [load(part) for path in arguments.run for part in members(Path(path))]
    every = measured_of(runs, arguments.attack or [], arguments.limit)
    page = page_from(every, runs, arguments.title, limit=arguments.limit, compare=arguments.compare)
    for path in searches:
        page.add(f"How small it may be: {path.name}", *frontier_chapter(path))
    write_atomically(Path(arguments.out), page.html().encode())
    told: dict[str, Any] = {"report": str(Path(arguments.out).resolve())}
    if arguments.compare:
        found = [verdict for one in every for verdict in verdicts(one)]
        if not arguments.json:
            print("\n".join(verdict.sentence for verdict in found) or "Nothing to compare: one run of each task.")
        told |= {"differences": [{**verdict.described(), "said": verdict.sentence} for verdict in found]}
    show(told if arguments.json else {"report": told["report"]}, arguments.json)


def members(path: Path) -> list[Path]:
    """A run, the runs of a cohort's folder, or the two that matter of a search's."""
    from fewer.core.files.run_folder import Folder
    from fewer.report.frontier import FRONTIER, frontier_runs

    if (path / FRONTIER).exists():
        return frontier_runs(path)
    return [folder.path for folder in Folder(path).seeds()] or [path]
