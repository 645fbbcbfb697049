"""`fewer data vision`: the full MNIST set, or a look at your own images."""

from __future__ import annotations

import argparse

from fewer.core.errors import UserError


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--out", help="folder for the full MNIST set")
    parser.add_argument("--check", metavar="PATH", help="read this data, say what is in it or what is wrong")


def run(arguments: argparse.Namespace) -> None:
    """Check or fetch."""
    from fewer.cli.show import show

    if arguments.check:
        from fewer.core.registry import make

        task = make("vision", [f"data={arguments.check}"])
        counts = {split: len(task.data(split)) for split in ("train", "validation", "test")}
        shape, classes = list(getattr(task, "shape", ())), getattr(task, "classes", 0)
        show({**counts, "shape": shape, "classes": classes}, arguments.json)
        return
    if not arguments.out:
        raise UserError("no --out", "a folder to fetch MNIST into", "fewer data vision --out mnist")
    from pathlib import Path

    from fewer.systems.vision.task.files.fetch import fetch_mnist

    fetch_mnist(Path(arguments.out))
    use = f"fewer train vision --set data={arguments.out} --out runs/mnist"
    show({"out": arguments.out, "use": use}, arguments.json)
