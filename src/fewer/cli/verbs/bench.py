"""`fewer bench`: ratios of one run, one bench by name or all of them as one table."""

from __future__ import annotations

import argparse

from fewer.bench.overview import Line, benches, head, line_text, measure, write
from fewer.cli.words import offer
from fewer.core.errors import UserError
from fewer.core.settings import either, nearest


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    name = parser.add_argument("name", nargs="?", help=f"{either(benches())}; left out: all, quickly, in one table")
    offer(name, benches)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, noisier; what all of them do anyway")
    parser.add_argument("--full", action="store_true", help="all of them with as many rounds as each has by itself")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "-o",
        "--out",
        metavar="FOLDER",
        help="write bench.json and bench.html there; of one bench also bench-NAME.json, its table",
    )


def run(arguments: argparse.Namespace) -> None:
    """A table, and files where asked for."""
    from pathlib import Path

    import torch

    from fewer.cli.show import show

    torch.set_num_threads(arguments.threads)
    if arguments.name and arguments.name not in benches():
        raise UserError(f"bench {arguments.name!r}", "a bench", nearest(arguments.name, list(benches())))
    names = [arguments.name] if arguments.name else list(benches())
    quick = arguments.quick or not (arguments.name or arguments.full)
    if not arguments.json:
        print(head(), flush=True)
    lines: list[Line] = []
    for name in names:
        found = measure(name, quick=quick, strict=arguments.name is not None)
        lines += found
        if not arguments.json:
            print("\n".join(map(line_text, found)), flush=True)
    if arguments.out:
        command = " ".join(["fewer bench", *names[: bool(arguments.name)], *["--quick"][:quick]])
        written = write(Path(arguments.out), lines, command)
        if not arguments.json:
            print("\n".join(str(path) for path in written))
    if arguments.json:
        show(
            {
                name: [line.as_dict() for line in lines if line.bench == name]
                for name in dict.fromkeys(line.bench for line in lines)
            },
            True,
        )
