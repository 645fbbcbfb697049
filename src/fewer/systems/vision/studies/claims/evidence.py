"""Reading records for claims: numbers of trainings, and the words in which they are told."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fewer.studies.claims import Claim, Records, Verdict

__all__ = ["Row", "claim", "half_way", "mean", "of", "percents", "spread", "tested"]

Row = Mapping[str, Any]


def claim(name: str, where: str, says: str, *studies: str) -> Callable[[Callable[[Records], Verdict]], Claim]:
    """A claim of the function that judges it."""
    return lambda judge: Claim(name, where, says, studies, judge)


def of(records: Records, study: str, *names: str) -> Any:
    """What a record's details hold under the names, one inside the other; a training may be missing."""
    found: Any = records[study]["details"]
    for name in names:
        if name not in found:
            raise LookupError(f"no {' '.join(names)}")
        found = found[name]
    return found


def percents(rows: Sequence[Row], key: str) -> list[float]:
    """One value for each seed."""
    return [100 * row[key] for row in rows if key in row]


def mean(rows: Sequence[Row], key: str) -> float:
    """Over the seeds, in percent."""
    return statistics.fmean(percents(rows, key))


def spread(values: Sequence[float]) -> str:
    """Mean, deviation and how many."""
    deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{deviation} % (n = {len(values)})"


def tested(passed: Sequence[bool]) -> str:
    """holds where all parts do, fails where none does."""
    return "holds" if all(passed) else "partly" if any(passed) else "fails"


def half_way(values: Sequence[float]) -> bool:
    """Whether a sequence rises on the whole: its last half lies above its first."""
    middle = len(values) // 2
    return statistics.fmean(values[middle:]) > statistics.fmean(values[:middle])
