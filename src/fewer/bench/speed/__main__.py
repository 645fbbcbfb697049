"""Curves of all networks, kept in a file: `python -m fewer.bench.speed --out results/bench-speed.json`.

The whole takes long: `--minutes N` ends after the network at which so many have passed, and the same command goes on
with those that are missing. A file of other sources, another machine or other libraries is begun anew.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from fewer.bench.overview import Line, head, line_text
from fewer.bench.speed.curve import curve, shipped
from fewer.bench.speed.networks import subjects
from fewer.bench.speed.record import finished, write
from fewer.bench.speed.rows import BATCHES, bars
from fewer.zoo import names


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="networks or shipped packs; left out: all")
    parser.add_argument("--batches", type=int, nargs="+", default=list(BATCHES))
    parser.add_argument("--quick", action="store_true", help="three turns, and without torch.compile")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    known, packs = subjects(), names()
    parts = (arguments.names,) if arguments.names else (known, packs)
    wanted = [(name, batch) for part in parts for batch in arguments.batches for name in part]
    done = finished(arguments.out, quick=arguments.quick) if arguments.out else set()
    missing = [pair for pair in wanted if pair not in done]
    begin = time.monotonic()
    print(head())
    for count, (name, batch) in enumerate(missing):
        if time.monotonic() - begin > 60 * arguments.minutes:
            print(f"{len(missing) - count} of {len(wanted)} are missing: the same command goes on", flush=True)
            return
        made = shipped(name, batch, quick=arguments.quick) if name in packs else curve(
            known[name], batch, quick=arguments.quick
        )  # fmt: skip
        for row in made.rows(bars(made)):
            print(line_text(Line("speed", row)), flush=True)
        even = "none" if made.break_even is None else f"{made.break_even:.3f}"
        print(f"break-even {even}, error {made.error:.1e}", flush=True)
        if arguments.out:
            write(arguments.out, [made], quick=arguments.quick)


if __name__ == "__main__":
    main()
