"""Remarks on the matrix: who wins where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.report.groups import HalfInterval
from fewer.studies.remarks import Record

__all__ = ["winners"]


def winners(record: Record) -> list[str]:
    """A sentence for each task and sparsity: the best mean, and whether the intervals let one call it better."""
    lines = []
    cells = [row for row in record["rows"] if row[4] != "-" and row[1] != "dense"]
    tasks = list(dict.fromkeys(row[0] for row in cells))
    places = sorted({(row[0], row[2]) for row in cells}, key=lambda at: (tasks.index(at[0]), float(at[1].rstrip("%"))))
    for task, pruned in places:
        own = [row for row in cells if (row[0], row[2]) == (task, pruned)]
        first, *rest = sorted(own, key=lambda row: -_mean(row)[0])
        if rest:
            mean, half = _mean(first)
            level = [row[1] for row in rest if not mean - half > sum(_mean(row))]
            verdict = f"not told apart from {', '.join(level)}" if level else "ahead of all others"
            lines.append(f"{task} at {pruned}: {first[1]} {first[4]}, {verdict}")
    return lines


def _mean(row: Sequence[Any]) -> HalfInterval:
    """Of a cell as the table spells it; of one seed the interval is unknown, and nothing is told apart by it."""
    mean, _, half = row[4].partition(" ± ")
    return float(mean), float(half or "nan")
