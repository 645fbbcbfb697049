"""How the claims of the nowcast paper are judged: from paired differences, kept with their intervals, in two studies.

A difference agrees with a sentence if its interval lies on the side that the sentence says, and contradicts it if it
lies on the other. Rain counts from 0.5 on, as in the paper, and from the threshold of validation on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fewer.studies.claims import Records, Verdict

__all__ = ["DATA", "STUDIES", "alike", "gaps", "held_out", "judged", "length", "of_pairs", "ordered"]

DATA = "generated weather, 60 pixels"
STUDIES = ("nowcast/table1", "nowcast/longer")
_DECISIONS = {"at_half": "from 0.5 on", "at_threshold": "at the thresholds of validation"}
_Gap = tuple[str, Sequence[float]]  # what differs, and by how much: value, low, high


def gaps(records: Records, pairs: Sequence[tuple[str, str]], studies: Sequence[str] = STUDIES) -> Iterator[_Gap]:
    """The differences in IoU of those pairs that a study has."""
    for study in studies:
        for one, two in pairs:
            found: Mapping[str, Any] = records[study]["details"].get("contrasts", {}).get(f"{one} above {two}", {})
            for key, words in _DECISIONS.items():
                if key in found:
                    yield f"{one} less {two} {words} ({length(records, study)})", found[key]


def held_out(records: Records) -> dict[str, Mapping[str, Any]]:
    """Details on held-out windows, by length of training."""
    short: dict[str, Mapping[str, Any]] = {length(records, "nowcast/table2"): records["nowcast/table2"]["details"]}
    return short | {length(records, "nowcast/longer"): records["nowcast/longer"]["details"]["heldout"]}


def length(records: Records, study: str) -> str:
    """Of training."""
    samples = records[study]["settings"].get("samples")
    return "trained as in the paper" if samples is None else f"{samples:,} samples"


def _said(found: Sequence[_Gap]) -> str:
    """Values with their intervals."""
    return "; ".join(f"{words}: {value:+.4f} [{low:+.4f}, {high:+.4f}]" for words, (value, low, high) in found)


def judged(found: Sequence[_Gap], sense: int, why: str = "") -> Verdict:
    """Whether all differences are above (1) or below (-1) nothing, beyond their intervals."""
    if not found:
        return Verdict("untestable", why="no such pair was trained")
    agree = sum((low if sense > 0 else -high) > 0 for _, (_, low, high) in found)
    against = sum((high if sense > 0 else -low) < 0 for _, (_, low, high) in found)
    same = sum(sense * value > 0 for _, (value, _, _) in found)
    kind = "holds on ours" if agree == len(found) else "partly" if agree or (same and not against) else "fails"
    apart = f"{agree} of {len(found)} differences say so beyond their intervals, {against} the opposite"
    return Verdict(kind, _said(found), data=DATA, why=apart if kind == "holds on ours" else f"{apart}. {why}".strip())


def alike(found: Sequence[_Gap], margin: float) -> Verdict:
    """Whether all differences are less than a margin, intervals included."""
    if not found:
        return Verdict("untestable", why="no such pair was trained")
    within = sum(-margin < low and high < margin for _, (_, low, high) in found)
    kind = "holds on ours" if within == len(found) else "partly" if within else "fails"
    return Verdict(kind, _said(found), data=DATA, why=f"{within} of {len(found)} intervals lie within ±{margin}")


def ordered(numbers: Mapping[str, tuple[float, float]], why: str = "") -> Verdict:
    """Whether in each case the first value is the larger one."""
    if not numbers:
        return Verdict("untestable", why="no such pair was trained")
    right = sum(first > second for first, second in numbers.values())
    kind = "holds on ours" if right == len(numbers) else "partly" if right else "fails"
    text = "; ".join(f"{name}: {first:.4f} against {second:.4f}" for name, (first, second) in numbers.items())
    return Verdict(kind, text, data=DATA, why="" if kind == "holds on ours" else why)


def of_pairs(pairs: Sequence[tuple[str, str]], sense: int, why: str = "") -> Callable[[Records], Verdict]:
    """A judge of the first of each pair being above or below the second."""
    return lambda records: judged(list(gaps(records, pairs)), sense, why)
