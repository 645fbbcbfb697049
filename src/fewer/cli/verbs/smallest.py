"""`fewer smallest`: the smallest network that still does the job."""

from __future__ import annotations

import argparse
import sys

from fewer.cli.words import DEVICES, numeric, offer
from fewer.core.engines import ENGINES
from fewer.core.registry import systems

EXAMPLES = """examples:
  fewer smallest vision --set network=mlp --max-loss 0.005 --out runs/smallest
  fewer smallest control --set algorithm=plain-bc --max-bytes 20000 --out runs/fits"""

_WORDS = ("settings", "prune", "steps", "batch", "lr", "optimizer", "device", "engine", "seeds", "harden")


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    offer(parser.add_argument("task", help="a task's name, or module:Class for your own"), systems)
    parser.add_argument("--out", required=True, help="folder of the runs and frontier.json; the same command goes on")
    parser.add_argument("--max-loss", type=float, metavar="SHARE", help="of the dense figure on the validation split")
    parser.add_argument("--max-bytes", type=int, metavar="BYTES", help="of the pack")
    parser.add_argument("--max-microseconds", type=float, metavar="TIME", help="of one sample, one thread")
    parser.add_argument("--set", dest="settings", action="append", metavar="KEY=VALUE", help="a task setting")
    parser.add_argument("--prune", metavar="METHOD[,KEY=VALUE...]", help="how (default auto, the task's recipe)")
    for name, what in (("--optimizer", "KIND[,KEY=VALUE...]"), ("--harden", "KIND:BUDGET")):
        parser.add_argument(name, metavar=what, help="as for `fewer train`")
    for name in ("--steps", "--batch", "--lr"):
        numeric(parser.add_argument(name))
    numeric(parser.add_argument("--seed", dest="seeds", help="of every training (default 0)"))
    offer(parser.add_argument("--engine", help="cohort: all sparsities in lock-step, as on a GPU"), ENGINES)
    offer(parser.add_argument("--device", help="cpu or cuda (default cpu)"), DEVICES)


def run(arguments: argparse.Namespace) -> None:
    """A line for each network that is tried, then the chosen one."""
    from fewer.cli.show import show
    from fewer.sweep.smallest import Budget, Row, smallest

    def told(row: Row) -> None:
        if not arguments.json:
            said = row.get("refused") or (
                f"{row['metric']} {row['validation']:.4g} on validation, loss {row['loss']:.2%}, "
                f"{row['test']:.4g} on test, "
                f"{row['bytes']:,} bytes, {row['microseconds']:.1f} us"
            )
            print(f"{row['share']:.1%} kept: {said}", file=sys.stderr, flush=True)

    budget = Budget(arguments.max_loss, arguments.max_bytes, arguments.max_microseconds)
    found = smallest(
        arguments.task, {word: getattr(arguments, word) for word in _WORDS}, budget, arguments.out, told=told
    )
    shown = {"out": str(found.run.path), **{key: value for key, value in found.row.items() if key != "run"}}
    show({**shown, **({"curve": found.curve} if arguments.json else {})}, arguments.json)
