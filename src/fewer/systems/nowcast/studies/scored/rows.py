"""How the nowcast tables say what was found: rows, signed differences, the paper's figures beside ours."""

from __future__ import annotations

from typing import Any

from fewer.systems.nowcast.studies.members import Paper
from fewer.systems.nowcast.studies.scored.assembly import by_year
from fewer.systems.nowcast.studies.scored.skill import Skill
from fewer.systems.nowcast.task.scores.intervals import Interval, interval
from fewer.systems.nowcast.task.scores.scores import Scores

__all__ = ["COLUMNS", "row", "signed"]

COLUMNS = [
    "model", "paper: total, 2019, 2020 (real weather)", "ours: total [95 %]", "2019", "2020", "average precision",
    "cross-entropy", "knows where", "parameters",
]  # fmt: skip


def row(
    title: str, paper: Paper | None, scores: Scores, *, skilled: Skill | None = None, parameters: int | None = None
) -> list[Any]:
    """One line of Table 1 or 2."""
    means, found = by_year(scores), interval(scores)
    beside = "" if paper is None else ", ".join(f"{value:.3f}" for value in paper)
    ours = f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
    more = ["", "", ""] if skilled is None else [f"{value:.4f}" for value in skilled.metrics().values()]
    size = "" if parameters is None else f"{parameters:,}"
    return [title, beside, ours, f"{means['2019']:.3f}", f"{means['2020']:.3f}", *more, size]


def signed(gap: Interval) -> str:
    """A difference and its interval."""
    return f"{gap.value:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]"
