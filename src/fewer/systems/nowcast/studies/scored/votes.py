"""Models of a nowcast study together: the shared ways to combine them, and whether any is above its best member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fewer.core.task import Predict
from fewer.ensemble.combine import combine
from fewer.ensemble.groups import choices
from fewer.systems.nowcast.studies.members import MEMBERS, UPWIND, VOTERS, Paper
from fewer.systems.nowcast.studies.scored.assembly import by_year, threshold
from fewer.systems.nowcast.studies.scored.judged import Judged
from fewer.systems.nowcast.studies.scored.rows import row, signed
from fewer.systems.nowcast.studies.scored.skill import precision_above
from fewer.systems.nowcast.task.scores.intervals import difference

__all__ = ["Together", "votes"]

_VOTED: dict[str, Paper] = {"heldout": (0.300, 0.296, 0.303)}  # the paper's, by split
_BEST: dict[str, Paper] = {"test": (0.291, 0.303, 0.278), "heldout": (0.302, 0.301, 0.303)}
_PAPERS, _ROWS = "the paper's voters", "the paper's models"
_SOFT = ("mean", "weighted")  # of probabilities; the others combine decisions


@dataclass(frozen=True)
class Together:
    """Rows, sentences and details of all groups."""

    rows: list[list[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


def votes(judged: Judged, names: Sequence[str]) -> Together:
    """Of the paper's voters, of all its models, of our upwind models and of all that saw no validation window."""
    honest = [name for name in names if not MEMBERS[name].settings.get("train_on_all")]
    groups = {
        _PAPERS: [name for name in VOTERS if name in names],
        _ROWS: [name for name in names if MEMBERS[name].paper],
        "the upwind models": [name for name in UPWIND if name in names],
        "all models": honest,
    }
    found = Together()
    for title, group in groups.items():
        if len(group) > 1:
            if title == _PAPERS:
                _literal(found, judged, group)
            for how in ("majority", "best", *_SOFT) if title != _ROWS else ("majority",):
                _combined(found, judged, group, how, title)
            _chosen(found, judged, group, title)
    return found


def _literal(found: Together, judged: Judged, group: Sequence[str]) -> None:
    """As the paper voted: each member says rain from 0.5 on."""
    scores = judged.scored(combine(judged.task, [judged.forecast(name) for name in group], "majority"))
    best = max(group, key=lambda name: judged.at_half(name).metrics()["iou"])
    gain = difference(scores, judged.at_half(best))
    title = f"majority of {_PAPERS}, each from 0.5 on"
    found.rows.append(row(f"{title} ({len(group)})", _VOTED.get(judged.split), scores))
    found.notes.append(f"{title}: IoU {signed(gain)} above {best}, the best of them from 0.5 on.")
    found.details[title] = {**by_year(scores), "above_best_single_at_half": list(gain), "best_single": best}


def _combined(found: Together, judged: Judged, group: Sequence[str], how: str, title: str) -> None:
    """One way to combine a group, beside its best member."""
    predict = _ensemble(judged, group, how)
    scores = judged.scored(predict, threshold(judged.task, predict) if how in _SOFT else None)
    best = max(group, key=lambda name: judged.at_choice(name).metrics()["iou"])
    gain = difference(scores, judged.at_choice(best))
    details = {**by_year(scores), "above_best_single": list(gain), "best_single": best}
    line, skilled = f"{how} of {title}: IoU {signed(gain)} above {best}", None
    if how in _SOFT:
        skilled = judged.skill_of(predict, group[0])
        finest = max(group, key=lambda name: judged.skill(name).metrics()["average_precision"])
        above = precision_above(skilled, judged.skill(finest))
        details |= {**skilled.metrics(), "precision_above_best_single": list(above)}
        line += f"; average precision {signed(above)} above {finest}"
    found.rows.append(row(f"{how} of {title} ({len(group)})", None, scores, skilled=skilled))
    found.notes.append(f"{line}.")
    found.details[f"{how} of {title}"] = details


def _ensemble(judged: Judged, group: Sequence[str], how: str) -> Predict:
    """Members decide by the thresholds of validation where they decide."""
    members = judged.forecast if how in _SOFT else judged.decision
    return combine(judged.task, [members(name) for name in group], how)


def _chosen(found: Together, judged: Judged, group: Sequence[str], title: str) -> None:
    """Which member is best in each region, on validation and, said plainly, on the very windows that are counted."""
    decisions = [judged.decision(name) for name in group]
    scores = judged.scored(combine(judged.task, decisions, "best", split=judged.split))
    seen = f"best of {title} in each region, chosen on these very windows"
    found.rows.append(row(seen, _BEST.get(judged.split) if title == _ROWS else None, scores))
    gain = difference(scores, max((judged.at_choice(name) for name in group), key=lambda one: one.metrics()["iou"]))
    found.details[seen] = {**by_year(scores), "above_the_best": list(gain), "chosen_on_the_split_it_is_counted_on": 1.0}
    regions = choices(judged.task, decisions, "validation")
    found.details[f"chosen by region of {title}"] = {str(k): group[member] for k, member in regions.items()}
