"""Agents of the full control studies, cohort by cohort: `python -m fewer.systems.control.studies.full ENVIRONMENT ...`.

A GPU is often lent for minutes only. Each call trains some recipes on one environment and leaves a file for each agent
in DIR; `fewer reproduce control/fig1 --scale full --out DIR` puts the figures together from what is there. Without a
GPU agents train one after the other, on their kept weights: at 95 % a quarter of an hour each.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fewer.core.errors import UserError
from fewer.core.settings import nearest
from fewer.systems.control.studies.cohorts import ENVIRONMENTS, RECIPES, train_agents, where

__all__ = ["main"]


def main(words: Sequence[str] | None = None) -> int:
    """Train what is named; what is finished is skipped."""
    parser = argparse.ArgumentParser(prog="python -m fewer.systems.control.studies.full", description=__doc__)
    parser.add_argument("environment", choices=ENVIRONMENTS)
    parser.add_argument("--recipes", default="dense,snip:0.95,random:0.95", help="such as dense,snip:0.95,snip:0.9")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--steps", type=int, help="updates; default: the scale's own")
    parser.add_argument("--decay-from", type=float, default=0.5, help="share of the updates after which the rate falls")
    parser.add_argument("--out", default="runs/control-full", help="folder for the agents")
    parser.add_argument("--scale", default="full", choices=("quick", "full"))
    parser.add_argument("--save", action="store_true", help="keep the decoders' weights of seed 0 too")
    parser.add_argument("--compile", action="store_true", help="fused kernels on CUDA, after a minute of compiling")
    chosen = parser.parse_args(words)
    begin = time.monotonic()

    def log(line: str) -> None:
        print(f"{time.monotonic() - begin:7.1f} s  {line}", flush=True)

    try:
        place = where(chosen.scale, Path(chosen.out), log)
        place = dataclasses.replace(
            place,
            steps=chosen.steps or place.steps,
            compile=chosen.compile,
            optimizer=dataclasses.replace(place.optimizer, decay_from=chosen.decay_from),
        )
        seeds = [int(word) for word in chosen.seeds.split(",")]
        train_agents(place, chosen.environment, _recipes(chosen.recipes), seeds, save=chosen.save)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _recipes(text: str) -> list[tuple[str, float]]:
    found = []
    for word in text.split(","):
        name, _, sparsity = word.partition(":")
        if name not in RECIPES:
            raise UserError(f"recipe {name!r}", "a known one", nearest(name, list(RECIPES)))
        found.append((name, float(sparsity or 0.0)))
    return found


if __name__ == "__main__":
    sys.exit(main())
