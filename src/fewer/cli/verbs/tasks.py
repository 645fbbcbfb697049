"""`fewer tasks`: what there is, every setting with its default and unit, and what each preset stands for."""

from __future__ import annotations

import argparse
import sys

from fewer.cli.words import offer
from fewer.core.registry import system_of, systems, task_class
from fewer.core.settings import describe, either
from fewer.core.system import imported

# what all tasks share
SHARED = {
    "training": "fewer.core.engines.base:Training",
    "optimizer": "fewer.core.engines.optimizer:Optimizer",
    "pruning": "fewer.pruning.pruning:Pruning",
    "hardening": "fewer.attack.hardening.recipe:Hardening",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    words = (*systems(), *SHARED)
    offer(parser.add_argument("task", nargs="?", help=f"a task's name, or {either(SHARED)}"), words)


def run(arguments: argparse.Namespace) -> None:
    """A table."""
    from fewer.cli.colour import painted
    from fewer.cli.show import show

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
    """Settings of a task, then its presets; or of what all tasks share."""
    if name in SHARED:
        return describe(imported(SHARED[name]))
    settings = task_class(name)[1]
    from fewer.run.presets import spelled

    presets = [(f"--preset {preset}", "", "", spelled(words)) for preset, words in system_of(name).presets.items()]
    return [*(describe(settings) if settings is not None else []), *presets]
