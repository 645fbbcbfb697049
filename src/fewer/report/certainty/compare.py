"""Which differences are real: every pair of networks, in words, paired where both were judged on the same samples."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewer.core.maths.student import student_p, student_t
from fewer.report.certainty.units import Difference, Units, difference, holm
from fewer.report.groups import Group

if TYPE_CHECKING:
    from fewer.report.measured import Measured

__all__ = ["Compared", "Verdict", "compared", "verdicts"]

_LEVEL = 0.05


@dataclass(frozen=True)
class Compared:
    """The second group less the first."""

    first: str
    second: str
    found: Difference


@dataclass(frozen=True)
class Verdict:
    """One comparison among several."""

    compared: Compared
    p: float  # after Holm
    real: bool
    sentence: str

    def described(self) -> dict[str, str | float | bool]:
        """For programs."""
        found = self.compared.found
        return {"first": self.compared.first, "second": self.compared.second, "difference": found.mean,
                "low": found.low, "high": found.high, "p": self.p, "real": self.real}  # fmt: skip


def compared(first: Group, second: Group, name: str) -> Compared | None:
    """Over seeds where both have several, else over test units; None where there are neither."""
    seeds = [[run.metrics[name] for run in group.runs if name in run.metrics] for group in (first, second)]
    return _compared(first, second, name, seeds, (first.units, second.units))


def _compared(
    first: Group, second: Group, name: str, seeds: Sequence[list[float]], units: Sequence[tuple[Units | None, ...]]
) -> Compared | None:
    if all(len(values) > 1 for values in seeds):
        return Compared(first.name, second.name, _welch(*seeds))
    one, other = units[0][0], units[1][0]
    if one is None or other is None:
        return None
    return Compared(first.name, second.name, difference(one, other, name))


def _welch(first: list[float], second: list[float]) -> Difference:
    """Student's t over seeds, with variances of their own; degrees of freedom rounded down."""
    mean = statistics.fmean(second) - statistics.fmean(first)
    parts = [statistics.variance(values) / len(values) for values in (first, second)]
    how = f"{len(first)} and {len(second)} seeds, Welch's t test"
    error = math.sqrt(sum(parts))
    if error == 0:
        return Difference(mean, mean, mean, 1.0 if mean == 0 else 0.0, how)
    below = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (first, second)))
    freedom = max(1, int(sum(parts) ** 2 / below))
    half = student_t(freedom) * error
    return Difference(mean, mean - half, mean + half, student_p(mean / error, freedom), how)


def verdicts(measured: Measured) -> list[Verdict]:
    """Every pair on the leading metric, plain and under each attack; Holm over all of them."""
    found: list[tuple[str, Compared, tuple[str, str]]] = []
    for first, second in itertools.combinations(measured.groups, 2):
        plain = _plain(measured, first, second)
        if plain is not None:
            values = [measured.spelled(group.metric(measured.name)) for group in (first, second)]
            found.append((measured.metric.label, plain, (values[0], values[1])))
        for attack, lines in measured.attacked.items():
            ends = [lines[group.name][-1] for group in (first, second)]
            seeds = [[units.statistic(units.records)[measured.name] for units in end.units if units] for end in ends]
            under = _compared(first, second, measured.name, seeds, [end.units for end in ends])
            if under is not None:
                values = [measured.spelled(end.found) for end in ends]
                found.append((f"{measured.metric.label} under {attack}", under, (values[0], values[1])))
    adjusted = holm([one.found.p for _, one, _ in found])
    return [
        Verdict(one, p, p < _LEVEL, _sentence(measured, label, one, p, values, len(found)))
        for (label, one, values), p in zip(found, adjusted)
    ]


def _plain(measured: Measured, first: Group, second: Group) -> Compared | None:
    """Against dense it is known already."""
    if measured.dense is not None and measured.dense.name == first.name:
        return measured.against_dense(second)
    return compared(first, second, measured.name)


def _sentence(measured: Measured, label: str, one: Compared, p: float, values: tuple[str, str], count: int) -> str:
    change = measured.change(one.found.mean, one.found.low, one.found.high)
    chance = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
    corrected = f", Holm over {count} comparisons" if count > 1 else ""
    if p < _LEVEL:
        way = "higher" if one.found.mean > 0 else "lower"
        verdict = f"Real: {one.second} is {way} than {one.first} in {label}"
    else:
        verdict = f"Not shown: {one.second} and {one.first} may be equal in {label}"
    return f"{verdict}, {values[1]} against {values[0]}: {change}; {chance} ({one.found.how}{corrected})."
