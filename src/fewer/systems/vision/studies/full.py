"""The full-scale vision studies piece by piece: `python -m fewer.systems.vision.studies.full PIECE... --out DIR`.

A GPU is often lent for minutes only. Each piece trains a few networks and leaves them in DIR; `fewer reproduce
vision/... --scale full --out DIR` then puts the tables together from what is there.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fewer.core.errors import UserError
from fewer.core.settings import nearest
from fewer.systems.vision.studies.capacity import capacity_pieces
from fewer.systems.vision.studies.lightest import SMALL, rival_pieces, small_pieces, train_features, train_scores
from fewer.systems.vision.studies.lottery import TRAININGS, lottery_cost, train_tickets
from fewer.systems.vision.studies.pieces import Piece, Place, images, run_piece, where
from fewer.systems.vision.studies.suite import audit_saved

__all__ = ["main", "works"]

Work = Callable[[Place], object]


def works(scale: str, seeds: Sequence[int], together: int | None) -> dict[str, tuple[str, Work]]:
    """Every piece by name, with what it costs."""
    found: dict[str, tuple[str, Work]] = {}
    pieces = {
        **small_pieces(scale), **capacity_pieces("pgd", scale), **capacity_pieces("fgsm", scale), **rival_pieces(scale)
    }  # fmt: skip
    for name, piece in pieces.items():
        chosen = dataclasses.replace(piece, seeds=tuple(seeds) or piece.seeds)
        if together is not None:
            chosen = dataclasses.replace(chosen, together=together)
        found[name] = (_cost(chosen), _training(chosen))
    for name, piece in small_pieces(scale).items():
        chosen = dataclasses.replace(piece, seeds=tuple(seeds) or piece.seeds)
        count = len(chosen.replicas)
        found[f"suite-{name}"] = (f"the whole attack suite on {count} networks of {SMALL}", _auditing(chosen))
    found["hydra"] = ("scores, then weights, of the unpruned cured-pgd-cnn3, three densities", _scoring(scale, seeds))
    found["features"] = ("half of the features of cured-pgd-cnn3 each round, by four measures", _shrinking(scale))
    for kind in TRAININGS:
        found[f"lottery-{kind}"] = (lottery_cost(scale, kind), _playing(kind, scale))
    return found


def _scoring(scale: str, seeds: Sequence[int]) -> Work:
    return lambda place: train_scores(scale, place, seeds)


def _shrinking(scale: str) -> Work:
    return lambda place: train_features(scale, place)


def _playing(kind: str, scale: str) -> Work:
    return lambda place: train_tickets(kind, scale, place)


def _cost(piece: Piece) -> str:
    count, size = len(piece.replicas), piece.together or len(piece.replicas)
    return (
        f"{piece.network}, {count} replicas, {size} in a cohort: {-(-count // size) * piece.steps} cohort steps "
        f"of batch {piece.batch}, {piece.hardening or 'not hardened'}"
    )


def _training(piece: Piece) -> Work:
    return lambda place: run_piece(piece, place)


def _auditing(piece: Piece) -> Work:
    return lambda place: audit_saved(piece, place)


def main(words: Sequence[str] | None = None) -> int:
    """Run the pieces named, in order; what is finished is skipped."""
    parser = argparse.ArgumentParser(prog="python -m fewer.systems.vision.studies.full", description=__doc__)
    parser.add_argument("pieces", nargs="*", help="see --list")
    parser.add_argument("--list", action="store_true", help="every piece and its cost")
    parser.add_argument("--out", default="runs/vision-full", help="folder for the pieces")
    parser.add_argument("--scale", default="full", choices=("quick", "full"))
    parser.add_argument("--seeds", default="", help="such as 0,1,2; empty: the piece's own")
    parser.add_argument("--together", type=int, help="replicas in one cohort; 0: all; default: the piece's own")
    chosen = parser.parse_args(words)
    try:
        _run(chosen)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _run(chosen: argparse.Namespace) -> None:
    try:
        seeds = [int(word) for word in chosen.seeds.split(",") if word]
    except ValueError:
        raise UserError(f"--seeds {chosen.seeds}", "numbers with commas", "--seeds 0,1,2") from None
    found = works(chosen.scale, seeds, chosen.together)
    if chosen.list or not chosen.pieces:
        for name, (cost, _) in found.items():
            print(f"{name:<24} {cost}")
        return
    for name in chosen.pieces:
        if name not in found:
            raise UserError(f"piece {name!r}", "one that --list names", nearest(name, list(found)))
    begin = time.monotonic()

    def log(line: str) -> None:
        print(f"{time.monotonic() - begin:7.1f} s  {line}", flush=True)

    images(chosen.scale)  # a study can be put together without them, a piece cannot be trained
    place = where(chosen.scale, Path(chosen.out), log)
    for name in chosen.pieces:
        found[name][1](place)
        log(f"{name} done")


if __name__ == "__main__":
    sys.exit(main())
