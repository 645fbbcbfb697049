"""`fewer export`: a pack for a microcontroller or for another runtime."""

from __future__ import annotations

import argparse

from fewer.cli.opened import add_pack, opened
from fewer.core.errors import UserError


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    add_pack(parser)
    parser.add_argument("--to", required=True, help="c (one C99 file) or onnx")
    parser.add_argument("-o", "--out", required=True, help="file to write")
    parser.add_argument("--name", default="predict", help="c: the function's name")


def run(arguments: argparse.Namespace) -> None:
    """Write it."""
    from fewer.cli.show import show

    pack = opened(arguments)
    if arguments.to == "c":
        from fewer.packs.export.c import export

        export(pack, arguments.out, arguments.name)
    elif arguments.to == "onnx":
        from fewer.packs.export import onnx as export_onnx

        export_onnx.export(pack, arguments.out)
    else:
        raise UserError(f"--to {arguments.to}", "c or onnx")
    show({"written": arguments.out}, arguments.json)
