"""`fewer tasks`: what there is, and every setting with its default and unit."""

from __future__ import annotations

import argparse
import sys


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("task", nargs="?", help="a task's name, `training`, `optimizer`, `pruning` or `hardening`")


def run(arguments: argparse.Namespace) -> None:
    """A table."""
    from fewer.cli.colour import painted
    from fewer.cli.show import show
    from fewer.core.registry import systems

    if not arguments.task:
        show({name: system.line for name, system in systems().items()}, arguments.json)
        return
    rows = describe_any(arguments.task)
    if arguments.json:
        show([dict(zip(("name", "default", "unit", "help"), row)) for row in rows], True)
        return
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else [0, 0, 0]
    for name, default, unit, help_line in rows:
        shown = painted(f"{name:<{widths[0]}}", "bold", sys.stdout)
        print(f"{shown}  {default:<{widths[1]}}  {unit:<{widths[2]}}  {help_line}".rstrip())


def describe_any(name: str) -> list[tuple[str, str, str, str]]:
    """Settings of a task, or of what all tasks share."""
    from fewer.core.settings import describe

    if name == "pruning":
        from fewer.pruning.pruning import Pruning

        return describe(Pruning)
    if name == "hardening":
        from fewer.attack.hardening.recipe import Hardening

        return describe(Hardening)
    if name in ("training", "optimizer"):
        from fewer.core.engines import base as engine
        from fewer.core.engines import optimizer

        return describe(engine.Training if name == "training" else optimizer.Optimizer)
    from fewer.core.registry import task_class

    settings = task_class(name)[1]
    return describe(settings) if settings is not None else []
