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
    parser.add_argument("--bare", action="store_true", help="the prediction alone, without a map that it would carry")
    add_changes(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write it, say how small it is."""
    from fewer.cli.show import show
    from fewer.packs.pack import Allowance, load
    from fewer.packs.slower import slower_than_dense
    from fewer.run.load import load as load_run
    from fewer.run.packing import carried_bytes, pack_run

    trained = load_run(arguments.run, arguments.set)
    written = pack_run(trained, arguments.out, arguments.values, bare=arguments.bare)
    packed = load(arguments.out, allowance=Allowance.unlimited())
    carried = carried_bytes(packed.settings.get("carried"))
    dense = sum(4 * tensor.size for tensor in packed.tensors().values())
    slower = slower_than_dense(packed)
    show(
        {
            "pack": arguments.out, "bytes": written, **({"of_them_carried": carried} if carried else {}),
            "dense_bytes": dense, "times_smaller": round(dense / (written - carried), 2),
            **({"speed": slower} if slower else {}),
        },
        arguments.json,
    )  # fmt: skip
