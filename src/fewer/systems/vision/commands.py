"""`fewer data vision`: MNIST, Fashion-MNIST or CIFAR-10 in full, or a look at your own images."""

from __future__ import annotations

import argparse

from fewer.core.errors import UserError

NAMES = ("mnist", "fashion", "cifar10")


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--out", help="folder to fetch a set into")
    parser.add_argument("--name", choices=NAMES, default="mnist", help="which set: " + ", ".join(NAMES))
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
        raise UserError("no --out", "a folder to fetch images into", "fewer data vision --name mnist --out mnist")
    use = f"fewer train vision --set data={_fetched(arguments.name, arguments.out)} --out runs/{arguments.name}"
    show({"name": arguments.name, "out": arguments.out, "use": use}, arguments.json)


def _fetched(name: str, out: str) -> str:
    """What `--set data=` takes, once it is there."""
    from pathlib import Path

    if name == "fashion":
        from fewer.systems.vision.task.files.fashion import fetch_fashion

        return str(fetch_fashion(Path(out)))
    if name == "cifar10":
        from fewer.systems.vision.task.files.fetch_cifar import fetch_cifar10

        fetch_cifar10(Path(out))
        return out
    from fewer.systems.vision.task.files.fetch import fetch_mnist

    fetch_mnist(Path(out))
    return out
