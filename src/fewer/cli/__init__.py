"""The command line: a verb first, a task or a file as its argument, the same options everywhere.

Each verb is a module with `add` (arguments, standard library only, so that help answers at once) and `run`.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from fewer.cli.colour import painted
from fewer.core.errors import Notice, UserError
from fewer.core.machine.memory import out_of_memory
from fewer.core.machine.version import VERSION
from fewer.core.registry import systems
from fewer.core.settings import nearest
from fewer.core.system import Named, imported

__all__ = ["VERBS", "main", "offered"]

VERBS = {
    "demo": "train, prune, attack, pack and report on embedded data, in minutes",
    "tasks": "what there is; a task's settings with defaults and units",
    "train": "train a task's networks into a run folder, or go on there",
    "smallest": "the smallest network within a loss, bytes or microseconds, and the curve it saw",
    "evaluate": "a run's metrics on the test split, also under attack",
    "vote": "metrics of several runs as one ensemble",
    "pack": "write a run's kept weights into one small file",
    "run": "predict with a pack",
    "export": "a pack as C or ONNX",
    "sweep": "a grid of trainings, in processes or on a Ray cluster",
    "reproduce": "tables and figures of the papers",
    "report": "runs as one HTML page",
    "serve": "packs and runs behind HTTP, with a page to play with",
    "bench": "speed and size against what else one could use, as ratios",
    "data": "fetch or check a task's data",
    "check": "run the contract suite on your own task class",
    "doctor": "which kernels, threads, extras and GPU there are, and what is missing for what",
    "completion": "a script with which your shell completes these words",
}

_FOLDERS = {"doctor": "about", "completion": "about"}  # others are in `verbs`


class Parser(argparse.ArgumentParser):
    """One line and exit code 2 instead of a usage text."""

    verbs: dict[str, Parser]

    def error(self, message: str) -> NoReturn:
        if found := re.match(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*?)\)", message):
            kind, word = found[1].lower(), found[2]
            choices = [choice.strip(" '\"") for choice in found[3].split(",")]
            message = f"unknown {kind} {word!r}; {nearest(word, choices)}"
        raise UserError(message, f"what `{self.prog} --help` lists", f"see `{self.prog} --help`")

    def parse(self, words: Sequence[str] | None) -> argparse.Namespace:
        """Like `parse_args`, but an unknown option is told which one it resembles."""
        arguments, unknown = self.parse_known_args(words)
        if not unknown:
            return arguments
        word = next((word for word in unknown if word.startswith("-")), unknown[0])
        known = [option for action in self.verbs[arguments.verb]._actions for option in action.option_strings]
        expected = f"what `fewer {arguments.verb} --help` lists"
        if not word.startswith("-"):
            raise UserError(f"one word too many: {word!r}", expected)
        name = word.split("=")[0]
        raise UserError(f"option {name!r}", expected, nearest(name, [o for o in known if len(o) > 2 or len(name) <= 2]))


def offered() -> dict[str, Named]:
    """Every verb: where its module is and what it does."""
    found = {name: (f"fewer.cli.{_FOLDERS.get(name, 'verbs')}.{name}", line) for name, line in VERBS.items()}
    for system in systems().values():
        found |= system.verbs
    return found


def parser() -> Parser:
    """Every verb with its arguments."""
    top = Parser(prog="fewer", description="Networks with fewer weights that do the same job.")
    top.add_argument("--version", action="version", version=f"fewer {VERSION}")
    parts = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    top.verbs = parts.choices
    for name, (module, help_line) in offered().items():
        verb = parts.add_parser(name, help=help_line, description=help_line)
        imported(module).add(verb)
        verb.add_argument("--json", action="store_true", help="print JSON for programs, no progress")
    return top


def _show(others: Callable[..., None], message: Warning | str, category: type[Warning], *where: Any) -> None:
    """A notice in one line, other warnings as Python shows them."""
    if issubclass(category, Notice):
        print(f"fewer: {message}", file=sys.stderr)
    else:
        others(message, category, *where)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", Notice)
            warnings.showwarning = functools.partial(_show, warnings.showwarning)
            arguments = parser().parse(words)
            imported(offered()[arguments.verb][0]).run(arguments)
        sys.stdout.flush()
    except UserError as error:
        if "--json" in (sys.argv[1:] if words is None else words):
            told = {"error": str(error), "given": error.given, "expected": error.expected, "cure": error.cure}
            print(json.dumps(told), file=sys.stderr)
        else:
            print(f"{painted('fewer:', 'red', sys.stderr)} {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "fewer":
            raise
        print(f"fewer: {error.name} is not installed; expected the extras; pip install 'fewer[all]'", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read us has gone; nobody to tell
    except (MemoryError, RuntimeError, OSError) as error:
        if not out_of_memory(error):
            raise
        said = " ".join(str(error).split())[:200] or type(error).__name__
        print(
            f"fewer: memory ended ({said}); expected what fits; a smaller batch or network needs less", file=sys.stderr
        )
        return 2
    except KeyboardInterrupt:
        print("fewer: stopped; run the same command again to go on", file=sys.stderr)
        return 130
    return 0
