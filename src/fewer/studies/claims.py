"""The ledger of claims: every sentence of a paper that can be tested, held against the results that are kept.

A system names its `Claim`s; each has a function that judges it from records, as the JSON files in results/ hold them.
Nothing about the outcome is written by hand, so a verdict cannot outlive its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["VERDICTS", "Claim", "Records", "Verdict"]

Records = Mapping[str, Mapping[str, Any]]  # study: its record

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
