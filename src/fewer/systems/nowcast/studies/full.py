"""The full-scale nowcast studies piece by piece: `python -m fewer.systems.nowcast.studies.full PIECE... --out DIR`.

Each piece trains one model on generated weather and leaves its forecasts in DIR; `all` is the whole study, the slowest
models first. `fewer reproduce nowcast/table1 --scale full --out DIR` (table2, fig1) puts the tables together from what
is there. All pieces of DIR must be made with the same options, on the same kind of device: a GPU draws other weather
than a CPU. Small windows leave a GPU idle unless several models train at a time: --processes, under NVIDIA's MPS.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from fewer.core.engines.base import Training
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.settings import nearest
from fewer.systems.nowcast.studies.members import MEMBERS, SCALES, Scale, member
from fewer.systems.nowcast.studies.pieces import BASELINES, Place, Placed, run_piece
from fewer.systems.nowcast.studies.processes import run_together, timed
from fewer.systems.nowcast.studies.tables import FULL

__all__ = ["main"]

_SLOWEST = ("swin", "vivit", "improved", "baseline", "focus", "drift")
_TIMED = 6  # steps from which a speed is told, after as many that warm up


def main(words: Sequence[str] | None = None) -> int:
    """Run the pieces named, in order; what is finished is skipped."""
    parser = argparse.ArgumentParser(prog="python -m fewer.systems.nowcast.studies.full", description=__doc__)
    parser.add_argument("pieces", nargs="*", help="see --list, or all")
    parser.add_argument("--list", action="store_true", help="every piece")
    parser.add_argument("--out", default="runs/nowcast-full", help="folder for the pieces")
    parser.add_argument("--scale", default="full", choices=tuple(SCALES))
    parser.add_argument("--samples", type=int, help="that every model learns from; default: the scale's own")
    parser.add_argument("--seconds", type=float, help="only say how many samples each piece learns from in that time")
    parser.add_argument("--size", type=int, help="pixels; default: the scale's own")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--windows", default="", help="such as train=700,validation=28,test=56,heldout=28")
    parser.add_argument(
        "--rates", default="", help="learning rates of convolutional models and transformers: 1e-3,4e-4"
    )
    parser.add_argument("--precision", choices=("float32", "bfloat16"), help="default: the scale's own; a CPU: float32")
    parser.add_argument("--compile", action="store_true", help="torch.compile the networks on CUDA")
    parser.add_argument("--processes", type=int, default=1, help="pieces at a time; they share the windows")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    try:
        return _run(parser.parse_args(words))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2


def _run(chosen: argparse.Namespace) -> int:
    every = ["truth", *BASELINES, *MEMBERS]
    if chosen.list or not chosen.pieces:
        for name in every:
            print(f"{name:<26} {MEMBERS[name].title if name in MEMBERS else 'no training'}")
        return 0
    chosen.pieces = _pieces(chosen.pieces, every)
    if chosen.processes < 1:
        raise UserError(f"--processes {chosen.processes}", "at least one")
    begin = time.monotonic()
    log = timed(begin)
    place = Place(Path(chosen.out), _scale(chosen), chosen.device, log)
    if chosen.processes > 1 and chosen.seconds is None:
        return run_together(chosen.pieces, place, chosen.processes, begin)
    for name in chosen.pieces:
        if chosen.seconds is not None:
            if name in MEMBERS:
                speed = _samples_a_second(name, place)
                log(f"{name}: {speed:.2f} samples/s, {int(speed * chosen.seconds)} samples in {chosen.seconds:g} s")
            continue
        run_piece(name, place)
        log(f"{name} done")
    return 0


def _pieces(names: list[str], every: list[str]) -> list[str]:
    """Those named, in an order that takes the slowest first where all of them are."""
    for name in names:
        if name not in (*every, "all"):
            raise UserError(f"piece {name!r}", "one that --list names, or all", nearest(name, every))
    if "all" not in names:
        return names
    members = dict.fromkeys([*FULL, *(name for name in names if name in MEMBERS)])
    slowest = sorted(members, key=lambda name: _SLOWEST.index(MEMBERS[name].settings["model"]))
    return ["truth", *slowest, *BASELINES]


def _scale(chosen: argparse.Namespace) -> Scale:
    scale = SCALES[chosen.scale]
    try:
        counts = {key: int(value) for key, value in (word.split("=") for word in chosen.windows.split(",") if word)}
        rates = tuple(float(word) for word in chosen.rates.split(",") if word) or scale.rates
    except ValueError:
        raise UserError(
            f"--windows {chosen.windows!r} --rates {chosen.rates!r}", "numbers", "--windows test=56 --rates 1e-3,4e-4"
        ) from None
    if set(counts) - set(scale.windows) or len(rates) != 2 or min([1, *counts.values()]) < 1:
        raise UserError(
            f"--windows {chosen.windows} --rates {chosen.rates}", f"counts of {', '.join(scale.windows)}; two"
        )
    changes = {key: getattr(chosen, key) for key in ("samples", "size", "batch", "precision")}
    return dataclasses.replace(
        scale,
        windows={**scale.windows, **counts},
        rates=rates,
        compile=chosen.compile,
        **{key: value for key, value in changes.items() if value is not None},
    )


def _samples_a_second(name: str, place: Place) -> float:
    """Of training, compilation and warm-up apart."""
    one, scale = member(name), place.scale
    small = dataclasses.replace(place, scale=dataclasses.replace(scale, windows={**scale.windows, "train": 28}))
    training = Training(
        steps=10**6,
        batch=scale.batch,
        optimizer=scale.optimizer(one),
        device=place.device,
        precision=one.precision or scale.precision,
        compile=scale.compile,
    )
    engine = Plain(Placed(small.scale.settings(one), small), training, scale.seed)
    engine.advance(_TIMED)
    engine.mean_losses()  # waits for the device
    begin = time.monotonic()
    engine.advance(_TIMED)
    engine.mean_losses()
    return _TIMED * scale.batch / (time.monotonic() - begin)


if __name__ == "__main__":
    sys.exit(main())
