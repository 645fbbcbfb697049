"""The pieces of the nowcast studies: the truth, every baseline, every model; the slowest first.

All pieces of a folder must be made with the same choices, on the same kind of device: a GPU draws other weather than a
CPU. Small windows leave a GPU idle unless several models train at a time: --processes, under NVIDIA's MPS.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from fewer.core.errors import UserError
from fewer.core.settings import from_text
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces, choice
from fewer.systems.nowcast.studies.members import MEMBERS, Member
from fewer.systems.nowcast.studies.pieces import BASELINES, run_piece, samples_a_second
from fewer.systems.nowcast.studies.scales import Scale, members_of
from fewer.systems.nowcast.studies.where import where

__all__ = ["Choices", "catalogue"]

_SLOWEST = ("swin", "vivit", "improved", "baseline", "focus", "drift")


@dataclass(frozen=True)
class Choices:
    """What may be changed; none: the scale's own, or that of the pieces that are there."""

    samples: int | None = choice(None, "that every model learns from")
    size: int | None = choice(None, "pixels")
    batch: int | None = choice(None, "samples of a step")
    windows: tuple[str, ...] = choice((), "such as train=700,validation=28,test=56,heldout=28")
    rates: tuple[float, ...] | None = choice(None, "learning rates of convolutional models and of transformers")
    precision: str | None = choice(None, "float32 or bfloat16; a CPU: float32")
    compile: bool = choice(False, "torch.compile the networks on CUDA")
    device: str | None = choice(None, "cpu or cuda")
    seconds: float | None = choice(None, "only say how many samples each piece learns from in that time")

    def scale(self, start: Scale) -> Scale:
        """With these instead of its own."""
        changes: dict[str, Any] = {
            key: value for key in ("samples", "size", "batch", "rates", "precision", "compile")
            if (value := getattr(self, key)) is not None
        }  # fmt: skip
        try:
            counts = {key: int(value) for key, value in (word.split("=") for word in self.windows)}
        except ValueError:
            counts = {"": 0}
        if not counts.keys() <= start.windows.keys() or min([1, *counts.values()]) < 1:
            raise UserError(f"windows={','.join(self.windows)}", f"counts of {', '.join(start.windows)}", "test=56")
        for key in ("samples", "batch"):
            if changes.get(key, 1) < 1:
                raise UserError(f"{key}={changes[key]}", "at least one")
        if len(self.rates or (1, 1)) != 2:
            raise UserError(f"rates={self.rates}", "two", "rates=1e-3,4e-4")
        return dataclasses.replace(start, windows={**start.windows, **counts}, **changes)


def catalogue(order: Order) -> Pieces:
    """`all` is what the study trains by itself; further members take part if they are named."""
    chosen = from_text(Choices, order.words)
    place = where(order)
    place = dataclasses.replace(place, scale=chosen.scale(place.scale), device=chosen.device or place.device)

    def make(name: str) -> None:
        if chosen.seconds is None:
            run_piece(name, place)
        elif name in MEMBERS:
            speed = samples_a_second(name, place)
            order.log(f"{name}: {speed:.2f} samples/s, {speed * chosen.seconds:.0f} samples in {chosen.seconds:g} s")

    def piece(name: str) -> Piece:
        line = MEMBERS[name].title if name in MEMBERS else "no training"
        return Piece(line, lambda: make(name), whole=name in usual or name not in MEMBERS)

    usual = members_of(order)
    slowest = sorted(MEMBERS, key=lambda name: _cost(MEMBERS[name]))
    names = dict.fromkeys(["truth", "satellite-extrapolation", *slowest, *BASELINES])
    return Pieces({name: piece(name) for name in names}, Choices, shared=place)


def _cost(one: Member) -> tuple[int, bool]:
    """The slowest first: Swin-UNETR in 32 bit takes twice as long as any other."""
    return _SLOWEST.index(one.settings["model"]), not (one.precision or one.longer > 1)
