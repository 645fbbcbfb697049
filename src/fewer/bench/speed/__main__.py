"""Curves of some networks, kept in a file: `python -m fewer.bench.speed NAME... --out results/bench-speed.json`."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from fewer.bench.overview import Line, head, line_text
from fewer.bench.speed.curve import Curve, curve, shipped
from fewer.bench.speed.networks import subjects
from fewer.bench.speed.record import write
from fewer.bench.speed.rows import BATCHES, bars
from fewer.zoo import names


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="networks or shipped packs; left out: all")
    parser.add_argument("--batches", type=int, nargs="+", default=list(BATCHES))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    known, packs = subjects(), names()
    print(head())
    for name in arguments.names or [*known, *packs]:
        for batch in arguments.batches:
            one: Curve
            if name in packs:
                one = shipped(name, batch, quick=arguments.quick)
            else:
                one = curve(known[name], batch, quick=arguments.quick)
            for row in one.rows(bars(one)):
                print(line_text(Line("speed", row)), flush=True)
            even = "none" if one.break_even is None else f"{one.break_even:.3f}"
            print(f"break-even {even}, error {one.error:.1e}", flush=True)
            if arguments.out:
                write(arguments.out, [one])


if __name__ == "__main__":
    main()
