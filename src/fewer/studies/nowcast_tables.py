"""The nowcast paper's tables on generated weather, from pieces: each model, its thresholds, and what they are together.

The paper's numbers are of real weather and another amount of training: they stand beside ours and are never compared.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from fewer.core.errors import UserError
from fewer.core.task import Predict
from fewer.ensemble.combine import combine
from fewer.ensemble.groups import choices
from fewer.studies.nowcast_assembly import Recorded, by_year, decided, recalled, scored, threshold
from fewer.studies.nowcast_members import MEMBERS, SCALES, UPWIND, VOTERS
from fewer.studies.nowcast_pieces import BASELINES, Place, record, run_piece, same_windows
from fewer.studies.nowcast_skill import Skill, entropy_below, precision_above, skill
from fewer.studies.study import Result, Say
from fewer.tasks.nowcast.intervals import Interval, difference, interval
from fewer.tasks.nowcast.scores import Scores
from fewer.tasks.nowcast.thresholds import Choice

__all__ = ["available", "ensembles", "table1", "table2", "where"]

QUICK = (
    "baseline", "baseline-iou", "improved", "improved-adabelief", "swin", "vivit", "focus", "focus-deltas", "drift",
)  # fmt: skip
OURS = ("focus", "focus-adabelief", "focus-deltas", *UPWIND)
# what an hour of one GPU trains; further members take part if their pieces are there
FULL = (
    "baseline", "baseline-iou", "improved", "improved-adabelief", "swin", "swin-adabelief", "channels",
    "channels-adabelief", "vivit", "focus", "focus-deltas", *UPWIND,
)  # fmt: skip
PAPER_BEST_TEST = (0.291, 0.303, 0.278)
TABLE2: dict[str, tuple[float, float, float]] = {
    "baseline": (0.255, 0.259, 0.251),
    "improved": (0.270, 0.261, 0.278),
    "swin": (0.281, 0.283, 0.280),
    "majority": (0.300, 0.296, 0.303),
    "best": (0.302, 0.301, 0.303),
}
COLUMNS = [
    "model", "paper: total, 2019, 2020 (real weather)", "ours: total [95 %]", "2019", "2020", "average precision",
    "cross-entropy", "knows where", "parameters",
]  # fmt: skip


def where(scale: str, out: Path, say: Say) -> Place:
    """Quick pieces are made here; full ones are made where there is a GPU, and otherwise only read."""
    place = Place(out, SCALES[scale], "cuda" if scale == "full" and torch.cuda.is_available() else "cpu", say)
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
            "python -m fewer.studies.nowcast_full --list, or --scale quick",
        )  # fmt: skip
    for name, piece in pieces.items():
        if not same_windows(piece, fallen):
            raise UserError(f"piece {name} of other windows than the truth", "one kind of device", "make it anew")
    return list(pieces)


def ensembles(task: Recorded, members: Mapping[str, Predict], choice: Mapping[str, Choice]) -> dict[str, Predict]:
    """The shared ways to combine, on members whose decisions were chosen on validation where they decide."""
    voters = [decided(members[name], choice[name]) for name in members]
    found = {how: combine(task, voters, how) for how in ("majority", "best")}
    return found | {how: combine(task, list(members.values()), how) for how in ("mean", "weighted")}


def table1(scale: str, out: Path, say: Say) -> Result:
    """Every model of the paper's Table 1 and ours, on the test windows."""
    place = where(scale, out, say)
    names = available(scale, place)
    task, split = Recorded(place), "test"
    rows, details, judged, halves, choice = [], {}, {}, {}, {}
    skills: dict[str, Skill] = {}
    for name in [*(n for n in BASELINES if record(n, place) is not None), *names]:
        predict = recalled(name, place)
        choice[name] = threshold(task, predict)
        halves[name] = half = scored(task, predict, split)
        judged[name] = chosen = scored(task, predict, split, decision=choice[name].thresholds)
        title, paper = (MEMBERS[name].title, MEMBERS[name].paper) if name in MEMBERS else (name, None)
        if name in MEMBERS:
            skills[name] = skill(task, predict, split, _weight(name, place))
            rows.append(_row(title, paper, half, record(name, place), skills[name]))
        rows.append(_row(f"{title}, threshold {choice[name].thresholds[0]:.2f} (validation)", None, chosen))
        details[name] = _details(half, chosen, choice[name], record(name, place))
        details[name] |= skills[name].figures() if name in skills else {}
        say(f"{name}: {interval(half)}, from {choice[name].thresholds[0]:.2f} on: {interval(chosen)}")
        if name == "swin":
            for fixed, paper in ((0.2, (0.227, 0.248, 0.207)), (0.65, (0.194, 0.204, 0.183))):
                other = scored(task, predict, split, decision=fixed)
                rows.append(_row(f"{title}, threshold {fixed}", paper, other))
            each = threshold(task, predict, per_lead=True)
            other = scored(task, predict, split, decision=each.thresholds)
            rows.append(_row(f"{title}, a threshold for each lead time (validation)", None, other))
    more, notes, extra = _together(task, place, names, split, choice, skills)
    details |= extra
    return Result(
        title="Table 1 on generated weather: IoU per region-year, test windows",
        columns=COLUMNS,
        rows=rows + more,
        notes=[*_notes(scale, place), *notes, *_contrasts(judged, halves, skills)],
        details=details,
    )


def table2(scale: str, out: Path, say: Say) -> Result:
    """The paper's Table 2 and ours, on held-out windows."""
    place = where(scale, out, say)
    names = available(scale, place)
    task, split = Recorded(place), "heldout"
    wanted: list[str] = [name for name in ("baseline", "improved", "swin", "focus", "drift") if name in names]
    choice = {name: threshold(task, recalled(name, place)) for name in wanted}
    rows, judged, halves, skills = [], {}, {}, {}
    for name in wanted:
        predict, title, limit = recalled(name, place), MEMBERS[name].title, choice[name].thresholds
        judged[name], halves[name] = scored(task, predict, split, decision=limit), scored(task, predict, split)
        skills[name] = skill(task, predict, split, _weight(name, place))
        rows.append(_row(title, TABLE2.get(name), halves[name], record(name, place), skills[name]))
        rows.append(_row(f"{title}, threshold {limit[0]:.2f} (validation)", None, judged[name]))
    more, notes, extra = _together(task, place, names, split, choice, skills)
    return Result(
        title="Table 2 on generated weather: IoU per region-year, held-out windows",
        columns=COLUMNS,
        rows=rows + more,
        notes=[*_notes(scale, place), *notes, *_contrasts(judged, halves, skills)],
        details={
            "members": {name: {**by_year(scores), **skills[name].figures()} for name, scores in judged.items()},
            **extra,
        },
    )


def _together(
    task: Recorded,
    place: Place,
    names: Sequence[str],
    split: str,
    known: Mapping[str, Choice],
    skills: Mapping[str, Skill],
) -> tuple[list[list[Any]], list[str], dict[str, Any]]:
    """Rows of ensembles: of the paper's voters, ours and all models; what is known of members is not found anew."""
    voters, upwind = ([name for name in group if name in names] for group in (VOTERS, UPWIND))
    rows, notes = [], []
    details: dict[str, Any] = {}
    honest = [name for name in names if not MEMBERS[name].settings.get("train_on_all")]
    for group, title in (
        (voters, "the paper's voters"), (upwind, "the upwind models"), (honest, "all models"),
    ):  # fmt: skip
        if len(group) < 2:
            continue
        members = {name: recalled(name, place) for name in group}
        choice = {n: known[n] if n in known else threshold(task, predict) for n, predict in members.items()}
        known = {**known, **choice}
        skills = {**{n: skill(task, members[n], split, _weight(n, place)) for n in group if n not in skills}, **skills}
        decisions = [decided(members[n], choice[n]) for n in group]
        single = {n: scored(task, each, split) for n, each in zip(group, decisions)}
        best = max(single, key=lambda name: single[name].figures()["iou"])
        for how, predict in ensembles(task, members, choice).items():
            limit = threshold(task, predict).thresholds if how in ("mean", "weighted") else [0.5]
            scores = scored(task, predict, split, decision=limit)
            paper = TABLE2["majority"] if group is voters and (how, split) == ("majority", "heldout") else None
            gain = difference(scores, single[best])
            details[f"{how} of {title}"] = {**by_year(scores), "above_best_single": list(gain), "best_single": best}
            line, told = f"{how} of {title}: IoU {_signed(gain)} above {best}", None
            if how in ("mean", "weighted"):
                told = skill(task, predict, split, _weight(group[0], place))
                finest = max(group, key=lambda name: skills[name].figures()["average_precision"])
                above = precision_above(told, skills[finest])
                details[f"{how} of {title}"] |= {**told.figures(), "precision_above_best_single": list(above)}
                line += f"; average precision {_signed(above)} above {finest}"
            rows.append(_row(f"{how} of {title} ({len(group)})", paper, scores, skilled=told))
            notes.append(f"{line}.")
        scores = scored(task, combine(task, decisions, "best", split=split), split)
        seen = f"best of {title} in each region, chosen on these very windows"
        beside = TABLE2["best"] if split == "heldout" else PAPER_BEST_TEST
        rows.append(_row(seen, beside if group is voters else None, scores))
        details[seen] = {**by_year(scores), "chosen_on_the_split_it_is_counted_on": 1.0}
        chosen = choices(task, decisions, "validation")
        details[f"chosen by region of {title}"] = {str(k): group[v] for k, v in chosen.items()}
    return rows, notes, details


def _weight(name: str, place: Place) -> float:
    """What a wet pixel counted in the training."""
    found: float = (record(name, place) or {})["positive_weight"]
    return found


def _row(
    title: str,
    paper: tuple[float, float, float] | None,
    scores: Scores,
    piece: Mapping[str, Any] | None = None,
    skilled: Skill | None = None,
) -> list[Any]:
    means, found = by_year(scores), interval(scores)
    beside = "" if paper is None else ", ".join(f"{value:.3f}" for value in paper)
    ours = f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
    size = "" if piece is None else f"{piece.get('parameters', 0):,}"
    more = ["", "", ""] if skilled is None else [f"{value:.4f}" for value in skilled.figures().values()]
    return [title, beside, ours, f"{means['2019']:.3f}", f"{means['2020']:.3f}", *more, size]


def _details(half: Scores, chosen: Scores, choice: Choice, piece: Mapping[str, Any] | None) -> dict[str, Any]:
    known = {key: (piece or {}).get(key) for key in ("samples", "training_seconds", "parameters", "settings")}
    return {
        "at_half": by_year(half), "interval": list(interval(half)), "threshold": choice.thresholds[0],
        "at_threshold": by_year(chosen), "by_place": half.by_place(), "by_lead": half.by_lead()["iou"], **known,
    }  # fmt: skip


def _contrasts(
    found: Mapping[str, Scores], halves: Mapping[str, Scores], skills: Mapping[str, Skill]
) -> list[str]:  # fmt: skip
    """Whether improved and Swin-UNETR are above the baseline, and the geometry-aware models above all others."""
    pairs = [("improved", "baseline"), ("swin", "baseline"), ("drift", "focus"), ("drift", "satellite-extrapolation")]
    others = [name for name in found if name in MEMBERS and name not in OURS]
    if others:
        best = max(others, key=lambda name: found[name].figures()["iou"])
        pairs += [(name, best) for name in ("focus", "drift")]
    lines = []
    for first, second in pairs:
        if first in found and second in found:
            chosen, half = (difference(each[first], each[second]) for each in (found, halves))
            line = (
                f"{first} above {second}: IoU {_signed(chosen)} at the thresholds of validation, {_signed(half)} from "
            )
            line += "0.5 on"
            if second in skills:
                one, other = skills[first], skills[second]
                line += f"; average precision {_signed(precision_above(one, other))}; cross-entropy lower by "
                line += _signed(entropy_below(one, other))
            lines.append(f"{line}.")
    return lines


def _signed(gap: Interval) -> str:
    return f"{gap.value:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]"


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
