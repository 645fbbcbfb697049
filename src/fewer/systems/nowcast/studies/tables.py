"""The nowcast paper's tables on generated weather, from pieces: each model, its thresholds, and what they are together.

The paper's numbers are of real weather and another amount of training: they stand beside ours and are never compared.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from fewer.core.errors import UserError
from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.systems.nowcast.studies.assembly import by_year, scored, threshold
from fewer.systems.nowcast.studies.judged import Judged
from fewer.systems.nowcast.studies.members import MEMBERS, SCALES, UPWIND
from fewer.systems.nowcast.studies.pieces import BASELINES, record, run_piece, same_windows
from fewer.systems.nowcast.studies.place import Place
from fewer.systems.nowcast.studies.rows import COLUMNS, Paper, row, signed
from fewer.systems.nowcast.studies.skill import entropy_below, precision_above
from fewer.systems.nowcast.studies.votes import votes
from fewer.systems.nowcast.task.scores.intervals import difference, interval

__all__ = ["available", "table1", "table2", "where"]

QUICK = (
    "baseline", "baseline-iou", "improved", "improved-adabelief", "swin", "vivit", "focus", "focus-deltas", "drift",
)  # fmt: skip
OURS = ("focus", "focus-adabelief", "focus-deltas", *UPWIND)
# what an hour of one GPU trains; further members take part if their pieces are there
FULL = (
    "baseline", "baseline-iou", "improved", "improved-adabelief", "swin", "swin-adabelief", "channels",
    "channels-adabelief", "vivit", "focus", "focus-deltas", *UPWIND,
)  # fmt: skip
TABLE2: dict[str, Paper] = {
    "baseline": (0.255, 0.259, 0.251),
    "improved": (0.270, 0.261, 0.278),
    "swin": (0.281, 0.283, 0.280),
}
_FIXED: dict[float, Paper] = {0.2: (0.227, 0.248, 0.207), 0.65: (0.194, 0.204, 0.183)}  # Swin-UNETR's, in Table 1


def where(order: Order) -> Place:
    """Quick pieces are made here; full ones are made where there is a GPU, and otherwise only read."""
    scale, out, log = order.scale, order.out, order.log
    place = Place(out, SCALES[scale], "cuda" if scale == "full" and torch.cuda.is_available() else "cpu", log)
    if scale == "full" and (found := _scale_of(out)) is not None:
        place = dataclasses.replace(place, scale=dataclasses.replace(place.scale, **found))
    return place


def _scale_of(out: Path) -> dict[str, Any] | None:
    """What the pieces that are there were made with, which options may have changed."""
    path = out / "pieces" / "nowcast-truth.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text())["scale"]
    return {**found, "rates": tuple(found["rates"])}


def available(scale: str, place: Place) -> list[str]:
    """Members whose pieces are finished; quick ones, and on a GPU the full study's own, are made first."""
    if scale == "quick" or place.device == "cuda":
        for name in ("truth", *BASELINES, *(QUICK if scale == "quick" else FULL)):
            run_piece(name, place)
    fallen = record("truth", place)
    pieces = {name: piece for name in MEMBERS if (piece := record(name, place)) is not None}
    if fallen is None or not pieces:
        raise UserError(
            f"no finished pieces in {place.out / 'pieces'}", "a CUDA GPU or pieces",
            "`fewer reproduce nowcast/table1 --list` names them; or --scale quick",
        )  # fmt: skip
    for name, piece in pieces.items():
        if not same_windows(piece, fallen):
            raise UserError(f"piece {name} of other windows than the truth", "one kind of device", "make it anew")
    return list(pieces)


def table1(order: Order) -> Result:
    """Every model of the paper's Table 1 and ours, on the test windows."""
    scale, log = order.scale, order.log
    place = where(order)
    names = available(scale, place)
    judged = Judged(place, "test")
    every = [*(name for name in BASELINES if judged.piece(name)), *names]
    rows, details = [], {}
    for name in every:
        rows += _rows(judged, name, MEMBERS[name].paper if name in MEMBERS else None)
        details[name] = _details(judged, name)
        limit = judged.choice(name).thresholds[0]
        log(f"{name}: {interval(judged.at_half(name))}, from {limit:.2f} on: {interval(judged.at_choice(name))}")
        if name == "swin":
            rows += _other_thresholds(judged, name)
    return _result(scale, judged, names, rows, details, every)


def table2(order: Order) -> Result:
    """The paper's Table 2 and ours, on held-out windows."""
    scale = order.scale
    place = where(order)
    names = available(scale, place)
    judged = Judged(place, "heldout")
    wanted: list[str] = [name for name in ("baseline", "improved", "swin", "focus", "drift") if name in names]
    rows = [each for name in wanted for each in _rows(judged, name, TABLE2.get(name))]
    found = {name: {**by_year(judged.at_choice(name)), **judged.skill(name).metrics()} for name in wanted}
    return _result(scale, judged, names, rows, {"members": found}, wanted)


def _result(
    scale: str, judged: Judged, names: Sequence[str], rows: list[list[Any]], details: dict[str, Any],
    shown: Sequence[str],
) -> Result:  # fmt: skip
    """Models, then what they are together."""
    number, windows = {"test": (1, "test"), "heldout": (2, "held-out")}[judged.split]
    together = votes(judged, names)
    return Result(
        title=f"Table {number} on generated weather: IoU per region-year, {windows} windows",
        columns=COLUMNS,
        rows=rows + together.rows,
        notes=[*_notes(scale, judged.place), *together.notes, *_contrasts(judged, shown)],
        details=details | together.details,
    )


def _rows(judged: Judged, name: str, paper: Paper | None) -> list[list[Any]]:
    """From 0.5 on, if it was trained, and from its own threshold on."""
    title, limit = MEMBERS[name].title if name in MEMBERS else name, judged.choice(name).thresholds[0]
    rows = [row(f"{title}, threshold {limit:.2f} (validation)", None, judged.at_choice(name))]
    if name in MEMBERS:
        size = judged.piece(name).get("parameters", 0)
        rows.insert(0, row(title, paper, judged.at_half(name), skilled=judged.skill(name), parameters=size))
    return rows


def _other_thresholds(judged: Judged, name: str) -> list[list[Any]]:
    """The paper's fixed ones, and one for each lead time."""
    title, predict = MEMBERS[name].title, judged.forecast(name)
    rows = []
    for fixed, paper in _FIXED.items():
        scores = scored(judged.task, predict, judged.split, decision=fixed)
        rows.append(row(f"{title}, threshold {fixed}", paper, scores))
    each = judged.scored(predict, threshold(judged.task, predict, per_lead=True))
    return [*rows, row(f"{title}, a threshold for each lead time (validation)", None, each)]


def _details(judged: Judged, name: str) -> dict[str, Any]:
    half, chosen, piece = judged.at_half(name), judged.at_choice(name), judged.piece(name)
    return {
        "at_half": by_year(half), "interval": list(interval(half)), "threshold": judged.choice(name).thresholds[0],
        "at_threshold": by_year(chosen), "by_place": half.by_place(), "by_lead": half.by_lead()["iou"],
        **{key: piece.get(key) for key in ("samples", "training_seconds", "parameters", "settings")},
        **(judged.skill(name).metrics() if name in MEMBERS else {}),
    }  # fmt: skip


def _contrasts(judged: Judged, names: Sequence[str]) -> list[str]:
    """Whether improved and Swin-UNETR are above the baseline, and the geometry-aware models above all others."""
    pairs = [("improved", "baseline"), ("swin", "baseline"), ("drift", "focus"), ("drift", "satellite-extrapolation")]
    if others := [name for name in names if name in MEMBERS and name not in OURS]:
        best = max(others, key=lambda name: judged.at_choice(name).metrics()["iou"])
        pairs += [(name, best) for name in ("focus", "drift")]
    return [_contrast(judged, first, second) for first, second in pairs if first in names and second in names]


def _contrast(judged: Judged, first: str, second: str) -> str:
    chosen, half = (difference(found(first), found(second)) for found in (judged.at_choice, judged.at_half))
    line = f"{first} above {second}: IoU {signed(chosen)} at the thresholds of validation, {signed(half)} from 0.5 on"
    if second in MEMBERS:
        one, other = judged.skill(first), judged.skill(second)
        line += f"; average precision {signed(precision_above(one, other))}; cross-entropy lower by "
        line += signed(entropy_below(one, other))
    return f"{line}."


def _notes(scale: str, place: Place) -> list[str]:
    setting = place.scale
    small = " Quick: far too small and short to rank models; it shows that everything runs." if scale == "quick" else ""
    return [
        f"Generated weather, not the competition's: {setting.windows['train']} training windows of {setting.size} "
        f"pixels, {setting.samples} samples (batch {setting.batch}) for every model, {setting.windows['validation']} "
        f"validation, {setting.windows['test']} test and {setting.windows['heldout']} held-out windows.{small}",
        "The paper's numbers are of real weather and full training. In brackets: 95 % of a bootstrap over windows "
        "within region-years; differences are paired. Rain is from probability 0.5 on unless a threshold is said.",
        "Average precision: of all pixels and lead times, whatever the threshold; by chance the wet share. "
        "Cross-entropy: the loss that is trained, on these windows. Knows where: mean probability where it rained less "
        "where it did not, within a window; 0 if a model only knows how wet a window is.",
        "The paper chose its best prediction per region on the leaderboard's own windows.",
    ]
