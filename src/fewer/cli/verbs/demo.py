"""`fewer demo`: everything once, on embedded data."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--out", default="demo", help="folder for runs, packs and the report")


def run(arguments: argparse.Namespace) -> None:
    """Print the report's path last."""
    from fewer.cli.show import progress, show
    from fewer.report.demo import demo

    path = demo(Path(arguments.out), lambda total, title: progress(total, title, arguments.json))
    show({"report": str(path)}, arguments.json)
