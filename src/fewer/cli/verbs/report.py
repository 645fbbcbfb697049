"""`fewer report`: finished runs as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from fewer.cli.words import add_attack


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("run", nargs="+", help="finished run folders, or the folder of `fewer smallest`")
    parser.add_argument("-o", "--out", default="report.html")
    parser.add_argument("--title", default="fewer: report")
    add_attack(parser, "repeatable")
    parser.add_argument("--limit", type=int, default=500, help="test samples to attack")


def run(arguments: argparse.Namespace) -> None:
    """Write the page, print its path."""
    from fewer.cli.show import show
    from fewer.core.files.atomic import write_atomically
    from fewer.report.frontier import FRONTIER, frontier_chapter
    from fewer.report.runs import page_of
    from fewer.run.load import load

    searches = [Path(path) for path in arguments.run if (Path(path) / FRONTIER).exists()]
    runs = [load(part) for path in arguments.run for part in members(Path(path))]
    page = page_of(runs, arguments.title, arguments.attack or [], arguments.limit)
    for path in searches:
        page.add(f"How small it may be: {path.name}", *frontier_chapter(path))
    write_atomically(Path(arguments.out), page.html().encode())
    show({"report": str(Path(arguments.out).resolve())}, arguments.json)


def members(path: Path) -> list[Path]:
    """A run, the runs of a cohort's folder, or the two that matter of a search's."""
    from fewer.core.files.run_folder import Folder
    from fewer.report.frontier import FRONTIER, frontier_runs

    if (path / FRONTIER).exists():
        return frontier_runs(path)
    return [folder.path for folder in Folder(path).seeds()] or [path]
