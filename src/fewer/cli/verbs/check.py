"""`fewer check`: the contract suite for a task of your own."""

from __future__ import annotations

import argparse
import sys

from fewer.cli.words import offer
from fewer.core.errors import UserError
from fewer.core.registry import systems


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    offer(parser.add_argument("task", help="module:Class, or a task's name"), systems)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a task setting")


def run(arguments: argparse.Namespace) -> None:
    """One line a check; exit code 2 if one fails. A check that does not apply is skipped, with the reason."""
    from fewer.cli.colour import painted
    from fewer.cli.show import show
    from fewer.core.registry import make
    from fewer.custom.contract import check

    outcomes = check(make(arguments.task, arguments.set))
    failed = [outcome for outcome in outcomes if outcome.fault]
    if arguments.json:
        show([{"check": o.name, "fault": o.fault, "skipped": o.skipped, "note": o.note} for o in outcomes], True)
    else:
        said: set[str] = set()
        for outcome in outcomes:
            word, colour, why = "ok  ", "green", f": {outcome.note}" if outcome.note else ""
            if outcome.fault:
                word, colour, why = "FAIL", "red", f": {'as above' if outcome.fault in said else outcome.fault}"
            elif outcome.skipped:
                word, colour, why = "skip", "yellow", f": {outcome.skipped}"
            print(f"{painted(word, colour, sys.stdout)} {outcome.name}{why}")
            said |= {outcome.fault} if outcome.fault else set()
    if failed:
        raise UserError(
            f"{len(failed)} of {len(outcomes)} checks that fail", "none", "fewer/core/task.py is the contract"
        )
