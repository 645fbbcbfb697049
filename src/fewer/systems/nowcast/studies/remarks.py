"""Remarks on the nowcast studies: the votes, trainings that differ in one thing, and the window that is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewer.studies.remarks import Record
from fewer.studies.words import between, listed
from fewer.systems.nowcast.studies.members import VOTERS
from fewer.systems.nowcast.task.scores.shares import remark

__all__ = ["models", "window"]

_SEEDS = ("drift", "drift-2", "drift-3")  # the same but for the seed
_DROPOUT = {"baseline": "baseline-plain", "improved": "improved-plain"}


def models(record: Record) -> list[str]:
    """Votes against their best members, and members against each other."""
    details = record["details"]
    reached = _reached(details)
    lines = _votes(details)
    if len(seeds := [reached[name] for name in _SEEDS if name in reached]) > 1:
        spread = max(seeds) - min(seeds)
        lines.append(f"The {len(seeds)} upwind trainings that differ in their seed alone span {spread:.4f} of IoU.")
    voters = {name: reached[name] for name in VOTERS if name in reached}
    if len(voters) > 1:
        best = max(voters, key=lambda name: voters[name])
        gaps = [voters[best] - value for name, value in voters.items() if name != best]
        lines.append(f"Of the paper's voters {best} is the best alone, by {between(gaps, '.3f')} of IoU.")
    for name, plain in _DROPOUT.items():
        if name in reached and plain in reached:
            lines.append(f"Without dropout {name} changes by {reached[plain] - reached[name]:+.3f} of IoU.")
    lines += _apart(details.get("contrasts", {}))
    if silent := [name for name, value in reached.items() if value == 0]:
        lines.append(f"At its threshold no rain is hit by {listed(silent)}.")
    return lines


def _reached(details: Mapping[str, Any]) -> dict[str, float]:
    """IoU of each model at the threshold of validation."""
    return {name: found["at_threshold"]["total"] for name, found in details.items() if "at_threshold" in found}


def _votes(details: Mapping[str, Any]) -> list[str]:
    """How many votes are above and below the best of their members beyond the interval."""
    lines = []
    for key, figure in (("above_best_single", "IoU"), ("precision_above_best_single", "average precision")):
        gains = {name: found[key] for name, found in details.items() if key in found}
        if gains:
            above = [f"{name} ({gain[0]:+.4f})" for name, gain in gains.items() if gain[1] > 0]
            below = sum(gain[2] < 0 for gain in gains.values())
            named = f": {listed(above)}" if above else ""
            lines.append(
                f"By {figure} {len(above)} of {len(gains)} votes are above their best member beyond the interval{named}"
                f"; below it: {below}."
            )
    return lines


def _apart(contrasts: Mapping[str, Any]) -> list[str]:
    """Which models differ beyond the interval, as the paper decides and at thresholds of validation."""
    lines = []
    for key, words in (("at_half", "From 0.5 on"), ("at_threshold", "At the thresholds of validation")):
        gaps = {name.partition(" above "): found[key] for name, found in contrasts.items()}
        if gaps:
            above = [f"{one} is above {two}" for (one, _, two), gap in gaps.items() if gap[1] > 0]
            below = [f"{one} is below {two}" for (one, _, two), gap in gaps.items() if gap[2] < 0]
            lines.append(f"{words}, beyond the interval, of {len(gaps)} pairs: {listed([*above, *below])}.")
    return lines


def window(record: Record) -> list[str]:
    """What the drawn forecast says, beside what fell; and of all windows, where that was kept."""
    details = record["details"]
    lines = []
    if "shown" in details:
        shown: Mapping[str, Sequence[float]] = details["shown"]
        lines.append(f"The window drawn. {remark(shown['forecast'], shown['observed'])}")
    if "vote" in details:
        said, fell = details["vote"]["forecast_wet"], details["vote"]["wet"]
        lines.append(f"Over all test windows the vote says rain on {said:.1%} of the area; it fell on {fell:.1%}.")
    return lines
