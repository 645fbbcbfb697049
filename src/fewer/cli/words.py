"""The words that may stand at an argument: offered where it is added, completed by shells.

An argument whose words are all there is says so in `choices`; one that takes more than its words, such as
`snip,sparsity=0.95` or a task of one's own, offers them here. Words that are costly to list are offered as a function.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from fewer.attack.attacks import OPTIONS
from fewer.core.settings import either

__all__ = ["DEVICES", "SPLITS", "add_attack", "add_changes", "budgeted", "is_numeric", "numeric", "offer", "offered_by"]

Words = Iterable[str] | Callable[[], Iterable[str]]

DEVICES = ("cpu", "cuda")
SPLITS = ("train", "validation", "test")


def offer(action: argparse.Action, words: Words, *, or_file: bool = False) -> None:
    """Complete that argument by these words; `or_file`: names of files are as good."""
    vars(action)["words"], vars(action)["or_file"] = words, or_file


def numeric(action: argparse.Action) -> None:
    """A number, read by whoever reads all words of a job: nothing can be offered."""
    vars(action)["numeric"] = True


def is_numeric(action: argparse.Action) -> bool:
    """Whether a number stands there."""
    return action.type in (int, float) or vars(action).get("numeric", False)


def offered_by(action: argparse.Action) -> tuple[list[str], bool]:
    """The words, and whether the name of a file may stand there: also where there are none."""
    words: Words = vars(action).get("words", ())
    found = list(words() if callable(words) else words)
    return found, vars(action).get("or_file", not found)


def budgeted(kinds: Iterable[str]) -> list[str]:
    """Attacks or hardenings with a budget, as they are typed."""
    return [f"{kind}:0.3" for kind in kinds]


def add_attack(parser: argparse.ArgumentParser, often: str) -> None:
    """`--attack`, for `fewer.attack.threat.parse`."""
    help = f"such as fgsm:0.3, pgd:0.3,steps=40 or suite:0.3: {either(OPTIONS)}; {often}"
    offer(parser.add_argument("--attack", action="append", metavar="NAME:BUDGET", help=help), budgeted(OPTIONS))


def add_changes(parser: argparse.ArgumentParser) -> None:
    """`--set KEY=VALUE`, for `fewer.run.load.load`: settings of a finished run that are no longer as they were."""
    help = "a setting that has changed, such as data=DIR"
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=help)
