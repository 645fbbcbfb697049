"""Whether pruned networks do the job of their dense twins, in a row each."""

from __future__ import annotations

from collections.abc import Sequence

from fewer.report.certainty.units import Interval
from fewer.report.description import shown
from fewer.report.groups import Group
from fewer.report.measured import Measured
from fewer.report.page import table, words

__all__ = ["same_job", "verdict"]

_COLUMNS = ("network", "weights removed", "metric", "dense", "pruned", "difference", "same job")


def verdict(found: Interval) -> str:
    """Whether a network with this difference from its dense twin does the job."""
    return "unknown" if not found.known else "yes" if found.high >= 0 else "no"


def same_job(every: Sequence[Measured]) -> list[str]:
    """A row for each pruned network that was not hardened, beside the dense one of the same settings."""
    rows = [_row(one, group) for one in every for group in one.groups if _has_twin(one, group)]
    inside = sum(row[-1] == "yes" for row in rows)
    return [
        words(
            f"{inside} of {len(rows)} pruned networks are not told apart from their dense twins, or better: the 95 % "
            "interval of the difference is not below zero. Dense is a network of which nothing was removed."
        ),
        table(_COLUMNS, rows),
    ]


def _has_twin(measured: Measured, group: Group) -> bool:
    job, dense = group.job, measured.dense
    return bool(job.prune) and not job.harden and dense is not None and dense.job.settings == job.settings


def _row(measured: Measured, group: Group) -> list[str]:
    change = measured.against_dense(group)
    if measured.dense is None or change is None:
        return [group.name, *["-"] * (len(_COLUMNS) - 2), "unknown"]
    means = [shown(one.metric(measured.name).mean, measured.metric.share) for one in (measured.dense, group)]
    found = Interval(*change.found[:3])
    return [group.name, f"{100 * group.sparsity:.3g} %", measured.metric.label, *means, measured.change(*found),
            verdict(found)]  # fmt: skip
