"""The nowcast paper's tables, from pieces: each model, its thresholds, and what they are together.

The paper's numbers are of the competition's own test windows: they stand beside ours and are never compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.systems.nowcast.studies.described import commands, described, titled
from fewer.systems.nowcast.studies.members import MEMBERS, UPWIND, Paper
from fewer.systems.nowcast.studies.pieces import BASELINES
from fewer.systems.nowcast.studies.scored.assembly import by_year, scored, threshold
from fewer.systems.nowcast.studies.scored.judged import Judged
from fewer.systems.nowcast.studies.scored.rows import COLUMNS, row, signed
from fewer.systems.nowcast.studies.scored.skill import entropy_below, precision_above
from fewer.systems.nowcast.studies.scored.votes import votes
from fewer.systems.nowcast.studies.where import available, where
from fewer.systems.nowcast.task.scores.intervals import Interval, difference, interval

__all__ = ["both", "table1", "table2"]

OURS = ("focus", "focus-deltas", *UPWIND)
TABLE2 = ("baseline", "improved-transposed-all", "improved", "swin-float32", "swin", "focus", "drift")
_FIXED: dict[float, Paper] = {0.2: (0.227, 0.248, 0.207), 0.65: (0.194, 0.204, 0.183)}  # Swin-UNETR's, in Table 1
# what a table says how much one is above the other of
_PAIRS = (
    ("baseline-iou", "baseline"), ("swin-iou", "swin"), ("swin-dice", "swin"), ("baseline-all", "baseline"),
    ("swin-all", "swin"), ("baseline-all-long", "baseline-all"), ("improved-all", "baseline-all"),
    ("improved-transposed-all", "baseline-all"), ("improved-transposed-all", "improved-all"),
    ("improved-transposed-all", "baseline"), ("improved", "baseline"), ("swin", "baseline"), ("swin", "swin-float32"),
    ("channels", "swin"), ("upsample", "swin"), ("vivit", "swin"), ("vivit-deltas", "vivit"), ("swin", "improved-all"),
    ("swin-adabelief", "swin"), ("channels-adabelief", "channels"), ("channels-adabelief", "swin-adabelief"),
    ("drift", "focus"), ("drift", "satellite-extrapolation"),
)  # fmt: skip


def table1(order: Order) -> Result:
    """Every model of the paper's Table 1 and ours, on the test windows."""
    place = where(order)
    names = available(order, place)
    judged = Judged(place, "test")
    every = [*(name for name in BASELINES if judged.piece(name)), *names]
    rows, details = [], {}
    for name in every:
        rows += _rows(judged, name, MEMBERS[name].paper if name in MEMBERS else None)
        details[name] = _details(judged, name)
        limit = judged.choice(name).thresholds[0]
        order.log(f"{name}: {interval(judged.at_half(name))}, from {limit:.2f} on: {interval(judged.at_choice(name))}")
    fixed = "swin-float32" if "swin-float32" in names else "swin"
    if fixed in names:
        found, details[f"{fixed}, other decisions"] = _other_decisions(judged, fixed)
        rows += found
    return _result(order, judged, names, rows, details)


def table2(order: Order) -> Result:
    """The paper's Table 2 and ours, on held-out windows."""
    place = where(order)
    names = available(order, place)
    judged = Judged(place, "heldout")
    wanted = [name for name in TABLE2 if name in names]
    rows = [each for name in wanted for each in _rows(judged, name, MEMBERS[name].heldout)]
    found = {name: {**by_year(judged.at_choice(name)), **judged.skill(name).metrics()} for name in wanted}
    half = {name: by_year(judged.at_half(name)) for name in wanted}
    return _result(order, judged, names, rows, {"members": found, "members_at_half": half})


def both(order: Order) -> Result:
    """Test windows in the table, held-out windows in the details."""
    found = table1(order)
    found.details["heldout"] = table2(order).details
    return found


def _result(
    order: Order, judged: Judged, names: Sequence[str], rows: list[list[Any]], details: dict[str, Any]
) -> Result:
    """Models, then what they are together, then what separates two of them."""
    together = votes(judged, names)
    lines, pairs = _contrasts(judged, names)
    return Result(
        title=titled(order, judged.place, judged.split),
        columns=COLUMNS,
        rows=rows + together.rows,
        notes=[*described(order, judged.place), *together.notes, *lines],
        details=details | together.details | {"contrasts": pairs},
        commands=commands(order),
    )


def _rows(judged: Judged, name: str, paper: Paper | None) -> list[list[Any]]:
    """From 0.5 on, if it was trained, and from its own threshold on."""
    title, limit = MEMBERS[name].title if name in MEMBERS else name, judged.choice(name).thresholds[0]
    rows = [row(f"{title}, threshold {limit:.2f} (validation)", None, judged.at_choice(name))]
    if name in MEMBERS:
        size = judged.piece(name).get("parameters", 0)
        rows.insert(0, row(title, paper, judged.at_half(name), skilled=judged.skill(name), parameters=size))
    return rows


def _other_decisions(judged: Judged, name: str) -> tuple[list[list[Any]], dict[str, Any]]:
    """The paper's fixed thresholds and its calibration mask, and a threshold for each lead time."""
    title, predict = MEMBERS[name].title, judged.forecast(name)
    rows, details = [], {}
    half = judged.at_half(name)
    for fixed, paper in _FIXED.items():
        scores = scored(judged.task, predict, judged.split, decision=fixed)
        rows.append(row(f"{title}, threshold {fixed}", paper, scores))
        details[f"threshold {fixed}"] = {**by_year(scores), "above_half": list(difference(scores, half))}
    masked = judged.scored(judged.calibrated(name))
    rows.append(row(f"{title}, calibration mask", None, masked))
    details["calibration mask"] = {**by_year(masked), "above_half": list(difference(masked, half))}
    each = judged.scored(predict, threshold(judged.task, predict, per_lead=True))
    rows.append(row(f"{title}, a threshold for each lead time (validation)", None, each))
    return rows, details


def _details(judged: Judged, name: str) -> dict[str, Any]:
    half, chosen, piece = judged.at_half(name), judged.at_choice(name), judged.piece(name)
    return {
        "at_half": by_year(half), "interval": list(interval(half)), "threshold": judged.choice(name).thresholds[0],
        "chosen_iou": judged.choice(name).iou, "at_threshold": by_year(chosen),
        "interval_at_threshold": list(interval(chosen)),
        "by_place": half.by_place(), "by_place_at_threshold": chosen.by_place(), "by_lead": half.by_lead()["iou"],
        **{key: piece.get(key) for key in
           ("samples", "training_seconds", "parameters", "settings", "optimizer", "precision", "positive_weight")},
        **(judged.skill(name).metrics() if name in MEMBERS else {}),
    }  # fmt: skip


def _contrasts(judged: Judged, names: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """How far apart pairs of models are, and our geometry-aware models from the best other."""
    there = [*names, *(name for name in BASELINES if judged.piece(name))]
    pairs = [*_PAIRS]
    if others := [name for name in names if name not in OURS]:
        best = max(others, key=lambda name: judged.at_choice(name).metrics()["iou"])
        pairs += [(name, best) for name in ("focus", "drift")]
    found = {f"{one} above {two}": _contrast(judged, one, two) for one, two in pairs if one in there and two in there}
    return [_said(name, each) for name, each in found.items()], found


def _contrast(judged: Judged, first: str, second: str) -> dict[str, Interval]:
    found = {
        "at_threshold": difference(judged.at_choice(first), judged.at_choice(second)),
        "at_half": difference(judged.at_half(first), judged.at_half(second)),
    }
    if second in MEMBERS:
        one, other = judged.skill(first), judged.skill(second)
        found |= {"precision": precision_above(one, other), "entropy_below": entropy_below(one, other)}
    return found


def _said(name: str, found: dict[str, Interval]) -> str:
    line = f"{name}: IoU {signed(found['at_threshold'])} at the thresholds of validation, "
    line += f"{signed(found['at_half'])} from 0.5 on"
    if "precision" in found:
        line += f"; average precision {signed(found['precision'])}; cross-entropy lower by "
        line += signed(found["entropy_below"])
    return f"{line}."
