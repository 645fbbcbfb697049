"""Where a nowcast study's pieces are made, on which weather, and which of them are there."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import torch

from fewer.core.errors import UserError
from fewer.studies.order import Order
from fewer.systems.nowcast.studies.filed import judged_part, training_windows
from fewer.systems.nowcast.studies.members import MEMBERS
from fewer.systems.nowcast.studies.pieces import BASELINES, record, run_piece, same_windows
from fewer.systems.nowcast.studies.place import JUDGED, Place
from fewer.systems.nowcast.studies.scales import Scale, members_of, scale_of

__all__ = ["available", "where"]


def where(order: Order) -> Place:
    """Quick pieces are made here; others are made where there is a GPU, and otherwise only read."""
    heavy = order.scale != "quick"
    scale = _of_files(scale_of(order), order.data) if order.data else scale_of(order)
    place = Place(order.out, scale, "cuda" if heavy and torch.cuda.is_available() else "cpu", order.log, order.data)
    if heavy and (found := _made_with(order.out)) is not None:
        place = dataclasses.replace(place, scale=dataclasses.replace(scale, **found))
    return place


def _of_files(scale: Scale, root: str) -> Scale:
    """As large, and as many windows, as the files have."""
    train = training_windows(root, literal=scale.paper)
    parts = {split: judged_part(root, k, len(JUDGED), literal=scale.paper) for k, split in enumerate(JUDGED)}
    windows = {"train": len(train), **{split: len(part) for split, part in parts.items()}}
    samples = len(train) if scale.paper else scale.samples
    return dataclasses.replace(scale, size=train.size, windows=windows, samples=samples)


def _made_with(out: Path) -> dict[str, Any] | None:
    """What the pieces that are there were made with, which options may have changed."""
    path = out / "pieces" / "nowcast-truth.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text())["scale"]
    return {**found, "rates": tuple(found["rates"])}


def available(order: Order, place: Place) -> list[str]:
    """Members whose pieces are finished; quick ones, and on a GPU where nothing is yet, the study's own are made."""
    if order.scale == "quick" or (place.device == "cuda" and record("truth", place) is None):
        for name in ("truth", *BASELINES, *members_of(order)):
            run_piece(name, place)
    fallen = record("truth", place)
    pieces = {name: piece for name in MEMBERS if (piece := record(name, place)) is not None}
    if fallen is None or not pieces:
        raise UserError(
            f"no finished pieces in {place.out / 'pieces'}", "a CUDA GPU or pieces",
            f"`fewer reproduce {order.study} --list` names them; or --scale quick",
        )  # fmt: skip
    for name, piece in pieces.items():
        if not same_windows(piece, fallen):
            raise UserError(f"piece {name} of other windows than the truth", "one kind of device", "make it anew")
    return list(pieces)
