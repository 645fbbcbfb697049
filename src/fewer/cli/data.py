"""`fewer data`: fetch a task's public data, or look at what you have."""

from __future__ import annotations

import argparse

from fewer.core.errors import UserError


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("task", help="vision")
    parser.add_argument("--out", help="vision: folder for the full MNIST set")
    parser.add_argument("--check", metavar="PATH", help="vision: read this data, say what is in it or what is wrong")


def run(arguments: argparse.Namespace) -> None:
    """One task's own doing."""
    from fewer.cli.show import say

    if arguments.task != "vision":
        raise UserError(f"data for {arguments.task!r}", "vision", "other tasks generate their own")
    if arguments.check:
        from fewer.core.registry import make

        task = make("vision", [f"data={arguments.check}"])
        counts = {split: len(task.data(split)) for split in ("train", "validation", "test")}
        shape, classes = list(getattr(task, "shape", ())), getattr(task, "classes", 0)
        say({**counts, "shape": shape, "classes": classes}, arguments.json)
        return
    if not arguments.out:
        raise UserError("no --out", "a folder to fetch MNIST into", "fewer data vision --out mnist")
    from pathlib import Path

    from fewer.tasks.vision.fetch import fetch_mnist

    fetch_mnist(Path(arguments.out))
    use = f"fewer train vision --set data={arguments.out} --out runs/mnist"
    say({"out": arguments.out, "use": use}, arguments.json)
