"""The ledger of claims: every sentence of a paper that can be tested, held against the results that are kept.

A system names its `Claim`s; each has a function that judges it from records, as the JSON files in results/ hold them.
Nothing about the outcome is written by hand, so a verdict cannot outlive its numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewer.core.errors import UserError
from fewer.core.registry import systems
from fewer.core.settings import nearest
from fewer.core.system import imported
from fewer.studies.order import file_of, studies

__all__ = [
    "LACKING", "VERDICTS", "Claim", "Records", "Verdict", "claims", "counted", "holm", "ledger", "records_in", "told",
]  # fmt: skip

Records = Mapping[str, Mapping[str, Any]]  # study: its record

LACKING = "what it is judged by is not in the result of"

VERDICTS = {
    "holds": "our numbers say the same, on the paper's kind of data",
    "holds on ours": "our numbers say the same, on our own or generated data",
    "partly": "some of our numbers say the same",
    "fails": "our numbers contradict it",
    "untestable": "cannot be tested here",
}


@dataclass(frozen=True)
class Verdict:
    """What our numbers say of a claim."""

    kind: str  # one of VERDICTS
    numbers: str = ""  # ours, with intervals and the number of seeds or windows
    p: float | None = None  # of a permutation test, where there are seeds; corrected for their number in the ledger
    data: str = ""  # which own or generated data
    why: str = ""  # why it cannot be tested, or what was tried where it fails


@dataclass(frozen=True)
class Claim:
    """One testable sentence of a paper."""

    name: str  # short and stable, such as table2-threshold
    where: str  # Table II, Section V, Figure 3
    says: str  # in our words
    studies: tuple[str, ...]  # whose records judge it; none: it cannot be tested here
    judge: Callable[[Records], Verdict]


def claims() -> dict[str, tuple[Claim, ...]]:
    """Those of every paper, by the name of the system that it is about."""
    return {name: imported(system.claims) for name, system in systems().items() if system.claims}


def records_in(folder: Path) -> dict[str, Mapping[str, Any]]:
    """The results of studies that lie in a folder."""
    found = {}
    for name in studies():
        if (path := folder / file_of(name)).exists():
            try:
                found[name] = json.loads(path.read_text())
            except ValueError:
                raise UserError(f"{path}, which is no JSON", "the result of a study", "remove it") from None
    return found


def ledger(records: Records, paper: str = "") -> list[dict[str, Any]]:
    """Every claim with its verdict, paper by paper, as JSON holds it; `corrected` is p after Holm, within a paper."""
    every = claims()
    if paper and paper not in every:
        raise UserError(f"claims of {paper!r}", "a system whose paper has claims", nearest(paper, list(every)))
    return [line for name in ([paper] if paper else every) for line in _judged(name, every[name], records)]


def counted(lines: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How many verdicts of each kind every paper has."""
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        found.setdefault(line["paper"], dict.fromkeys(VERDICTS, 0))[line["verdict"]] += 1
    return found


def told(line: Mapping[str, Any]) -> str:
    """A line of the ledger as one reads it on a terminal."""
    parts = [f"- {line['verdict']}: {line['says']} ({line['where']})"]
    parts += [line[part] for part in ("numbers", "data", "why") if line[part]]
    if line["p"] is not None:
        parts.append(f"p {line['p']:.2g}; {line['corrected']:.2g} with all tests of the paper counted")
    return "\n    ".join(parts)


def _judged(paper: str, stated: Sequence[Claim], records: Records) -> list[dict[str, Any]]:
    verdicts = [_verdict(claim, records) for claim in stated]
    tested = [found.p for found in verdicts if found.p is not None]
    corrected = iter(holm(tested))
    return [
        {
            "paper": paper, "name": claim.name, "where": claim.where, "says": claim.says, "verdict": found.kind,
            "numbers": found.numbers, "data": found.data, "p": found.p,
            "corrected": None if found.p is None else next(corrected),
            "studies": list(claim.studies), "why": found.why,
        }
        for claim, found in zip(stated, verdicts)
    ]  # fmt: skip


def _verdict(claim: Claim, records: Records) -> Verdict:
    if lacking := [name for name in claim.studies if name not in records]:
        return Verdict("untestable", why=f"no result of {', '.join(lacking)} is kept")
    try:
        return claim.judge(records)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a quick result has fewer rows
        return Verdict("untestable", why=f"{LACKING} {', '.join(claim.studies)} ({type(error).__name__}: {error})")


def holm(values: Sequence[float]) -> list[float]:
    """Each p corrected for how many there are (Holm): the k-th smallest of n times n - k + 1, never below a smaller's.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    found, least = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, values[place] * (len(values) - rank)))
        found[place] = least
    return found
