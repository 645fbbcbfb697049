"""`fewer export`: a pack for a microcontroller or for another runtime."""

from __future__ import annotations

import argparse

from fewer.cli.opened import add_pack, opened
from fewer.cli.words import offer
from fewer.core.errors import UserError
from fewer.core.settings import either
from fewer.packs.export import FORMS


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    add_pack(parser)
    offer(parser.add_argument("--to", required=True, help=either(FORMS)), FORMS)
    parser.add_argument("-o", "--out", required=True, help="file to write")
    parser.add_argument("--name", default="predict", help="c: the function's name")
    parser.add_argument(
        "--length", type=int, help="c: longest sequence of a pack that takes any length (default: that of its data)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Write it."""
    from fewer.cli.show import show

    pack = opened(arguments)
    told: dict[str, object]
    if arguments.to not in FORMS:
        raise UserError(f"--to {arguments.to}", either(FORMS))
    if arguments.to == "c":
        from fewer.packs.export.c import export

        size = export(pack, arguments.out, arguments.name, length=arguments.length)
        told = {"written": arguments.out, "flash_bytes": size.flash, "ram_bytes": size.ram}
    else:
        from fewer.packs.export import onnx as export_onnx

        export_onnx.export(pack, arguments.out)
        told = {"written": arguments.out}
    show(told, arguments.json)
