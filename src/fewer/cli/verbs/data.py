"""`fewer data TASK`: fetch, make or look at a task's data; each task's own words are in `data_TASK.py`."""

from __future__ import annotations

import argparse
import importlib

from fewer.core.errors import UserError
from fewer.core.settings import nearest

TASKS_WITH_DATA = {
    "nowcast": "check, generate or pack files in the competition's layout; look at radar events",
    "vision": "fetch the full MNIST set, or check your own images",
    "control": "collect an expert's experience, or check your own logs",
}


def add(parser: argparse.ArgumentParser) -> None:
    """One sub-command a task."""
    tasks = parser.add_subparsers(dest="task", metavar="TASK")
    for name, sentence in TASKS_WITH_DATA.items():
        part = tasks.add_parser(name, help=sentence, description=sentence)
        part.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for programs")
        importlib.import_module(f"fewer.cli.data_{name}").add(part)


def run(arguments: argparse.Namespace) -> None:
    """One task's own doing."""
    if arguments.task is None:
        raise UserError("no task", f"one of {', '.join(TASKS_WITH_DATA)}", nearest("", list(TASKS_WITH_DATA)))
    importlib.import_module(f"fewer.cli.data_{arguments.task}").run(arguments)
