"""`fewer bench`: ratios of one run."""

from __future__ import annotations

import argparse

from fewer.core.errors import UserError
from fewer.core.settings import nearest

BENCHES = {
    "cohort": "many replicas in lock-step against one by one",
    "sweep": "a grid as cohorts against one by one",
    "attack": "robust accuracy against foolbox",
    "sparse": "packs: latency, throughput, size",
    "sparse_training": "training on kept weights alone",
    "control": "80 BCQ agents in lock-step against one by one",
    "nowcast": "Swin-UNETR training against MONAI",
    "nowcast_loader": "windows a second from the packed cache",
    "cellfree": "selections a second",
    "serve": "selections a second through HTTP",
    "radar": "rain carried along its motion, against pysteps (FEWER_RADAR: a folder of events)",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("name", nargs="?", help=f"one of {', '.join(BENCHES)}; all if left out")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, noisier")
    parser.add_argument("--threads", type=int, default=1)


def run(arguments: argparse.Namespace) -> None:
    """A table a bench."""
    import dataclasses
    import importlib

    import torch

    from fewer.bench.row import table
    from fewer.cli.show import say

    torch.set_num_threads(arguments.threads)
    if arguments.name and arguments.name not in BENCHES:
        raise UserError(f"bench {arguments.name!r}", "a bench", nearest(arguments.name, list(BENCHES)))
    found = {}
    for name in [arguments.name] if arguments.name else BENCHES:
        rows = importlib.import_module(f"fewer.bench.{name}").run(quick=arguments.quick)
        found[name] = [dataclasses.asdict(row) for row in rows]
        if not arguments.json:
            print(f"{name}: {BENCHES[name]}\n{table(rows)}\n", flush=True)
    if arguments.json:
        say(found, True)
