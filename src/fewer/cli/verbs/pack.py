"""`fewer pack`: the kept weights of a run as one small file."""

from __future__ import annotations

import argparse

from fewer.cli.words import add_changes, offer
from fewer.core.settings import either
from fewer.packs import VALUES


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("run", help="a finished run folder")
    parser.add_argument("-o", "--out", required=True, help="file to write, such as net.pack")
    values = parser.add_argument(
        "--values", default="float32", help=f"{either(VALUES)}: lossless, rounded or calibrated"
    )
    offer(values, VALUES)
    add_changes(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write it, say how small it is."""
    from fewer.cli.show import show
    from fewer.packs.pack import Allowance
    from fewer.packs.pack import load as load_pack
    from fewer.packs.slower import slower_than_dense
    from fewer.run.load import load
    from fewer.run.packing import pack_run

    trained = load(arguments.run, arguments.set)
    written = pack_run(trained, arguments.out, arguments.values)
    pack = load_pack(arguments.out, allowance=Allowance.unlimited())
    dense = sum(4 * tensor.size for tensor in pack.tensors().values())
    told = {"pack": arguments.out, "bytes": written, "dense_bytes": dense, "times_smaller": round(dense / written, 2)}
    slower = slower_than_dense(pack)
    show(told | ({"speed": slower} if slower else {}), arguments.json)
