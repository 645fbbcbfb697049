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
    """One line a check; exit code 2 if training is blocked. What only costs a method says which, and what to do."""
    from fewer.cli.colour import painted
    from fewer.cli.show import show
    from fewer.core.registry import make
    from fewer.custom.contract import check

    outcomes = check(make(arguments.task, arguments.set))
    blocking = [outcome for outcome in outcomes if outcome.blocks]
    if arguments.json:
        keys = {"check": "name", **{key: key for key in ("fault", "skipped", "note", "cost", "remedy")}}
        show([{key: getattr(outcome, name) for key, name in keys.items()} for outcome in outcomes], True)
    else:
        said: set[str] = set()
        for outcome in outcomes:
            word, colour = (
                ("FAIL", "red") if outcome.blocks else ("cost", "yellow") if outcome.fault else ("ok  ", "green")
            )
            why = outcome.note or ""
            if outcome.fault:
                fault = "as above" if outcome.fault in said else outcome.fault
                why = "; ".join(part for part in (outcome.cost, fault, outcome.remedy) if part)
                said.add(outcome.fault)
            elif outcome.skipped:
                word, colour, why = "skip", "yellow", outcome.skipped
            print(f"{painted(word, colour, sys.stdout)} {outcome.name}{f': {why}' if why else ''}")
    if blocking:
        raise UserError(
            f"{len(blocking)} of {len(outcomes)} checks that block training", "none", "mend what FAIL says, in order"
        )
