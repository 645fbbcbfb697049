"""`fewer data TASK`: fetch, make or look at a task's data, in each system's own words."""

from __future__ import annotations

import argparse

from fewer.core.errors import UserError
from fewer.core.registry import systems
from fewer.core.settings import nearest
from fewer.core.system import Named, imported


def _offered() -> dict[str, Named]:
    return {name: system.data for name, system in systems().items() if system.data is not None}


def add(parser: argparse.ArgumentParser) -> None:
    """One sub-command for each system that has one."""
    tasks = parser.add_subparsers(dest="task", metavar="TASK")
    for name, (module, sentence) in _offered().items():
        part = tasks.add_parser(name, help=sentence, description=sentence)
        part.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for programs")
        imported(module).add(part)


def run(arguments: argparse.Namespace) -> None:
    """One task's own doing."""
    if arguments.task is None:
        raise UserError("no task", f"one of {', '.join(_offered())}", nearest("", list(_offered())))
    imported(_offered()[arguments.task][0]).run(arguments)
