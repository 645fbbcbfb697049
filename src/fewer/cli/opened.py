"""The pack that a command is given: a file, or the name of one that comes with the package."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fewer import zoo
from fewer.cli.words import offer

if TYPE_CHECKING:
    from fewer.packs.pack import Allowance, Pack

__all__ = ["add_pack", "add_trust", "allowance", "opened"]


def add_pack(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    file = parser.add_argument("file", help="a pack, or the name of one that comes with the package")
    offer(file, zoo.names, or_file=True)
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Whether what a pack asks for is bounded."""
    parser.add_argument("--trust", action="store_true", help="let a pack take any memory and time: its maker is known")


def allowance(arguments: argparse.Namespace) -> Allowance | None:
    """What a pack may take; None is the default."""
    from fewer.packs.pack import Allowance

    return Allowance.unlimited() if arguments.trust else None


def opened(arguments: argparse.Namespace) -> Pack:
    """The pack."""
    from fewer.run.api import open_pack

    return open_pack(arguments.file, allowance=allowance(arguments))
