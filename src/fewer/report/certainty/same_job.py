"""Whether pruned networks do the job of their dense twins: differences with intervals, and who survives attack."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from fewer.core.maths.student import student_t
from fewer.core.registry import system_of
from fewer.report.attacks import quality_under, shortened
from fewer.report.certainty.units import Interval
from fewer.report.description import metric_of, shown
from fewer.report.groups import Group, grouped, spelled
from fewer.report.page import heading, table, words
from fewer.run.load import Trained

__all__ = ["difference", "same_job", "verdict"]


def difference(first: Sequence[float], second: Sequence[float]) -> Interval:
    """The second mean less the first, with its 95 % interval by Student: seeds of two trainings are no pairs."""
    found = statistics.fmean(second) - statistics.fmean(first)
    freedom = len(first) + len(second) - 2
    if min(len(first), len(second)) < 2:
        return Interval(found)
    spread = sum((len(values) - 1) * statistics.variance(values) for values in (first, second)) / freedom
    half = student_t(freedom) * (spread * (1 / len(first) + 1 / len(second))) ** 0.5
    return Interval(found, found - half, found + half)


def verdict(found: Interval) -> str:
    """Whether a network with this difference from its dense twin does the job."""
    return "unknown" if not found.known else "yes" if found.high >= 0 else "no"


def same_job(runs: Sequence[Trained], limit: int) -> list[str]:
    """A row for each pruned network beside its dense twin, then what an attack leaves of each classifier."""
    rows, attacked = [], list[list[str]]()
    for task in dict.fromkeys(run.job.task for run in runs):
        groups = grouped([run for run in runs if run.job.task == task])
        rows += [_pair(task, dense, pruned) for dense, pruned in _pairs(groups)]
        attacked += _survivors(task, groups, limit)
    inside = sum(row[-1] == "yes" for row in rows)
    parts = [
        words(
            f"{inside} of {len(rows)} pruned networks are not told apart from their dense twins: the 95 % interval of "
            "the difference (Student, over seeds) holds zero, or the pruned network is the better one."
        ),
        table(["pruned", "weights removed", "metric", "dense", "pruned", "difference", "does the job"], rows),
    ]
    if attacked:
        columns = ["network", "hardened", "metric", "attack", "untouched", "attacked"]
        parts += [heading("Where the hardened one stands"), table(columns, attacked)]
    return parts


def _pairs(groups: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Networks without hardening, each with the dense one of the same settings."""
    plain = [group for group in groups if not group.job.harden]
    return [
        (dense, pruned)
        for pruned in plain
        for dense in plain
        if pruned.job.prune and not dense.job.prune and dense.job.settings == pruned.job.settings
    ]


def _pair(task: str, dense: Group, pruned: Group) -> list[str]:
    name = next(iter(dense.first.metrics))
    metric = metric_of(task, name)
    values = [[run.metrics[name] for run in group.runs] for group in (dense, pruned)]
    found = difference(*values)

    def said(value: float) -> str:
        return shown(value, metric.share)

    removed = pruned.job.prune.sparsity if pruned.job.prune else 0.0
    return [pruned.name, f"{removed:.0%}", metric.label, *(spelled(g.metric(name), said) for g in (dense, pruned)),
            spelled(found, said), verdict(found)]  # fmt: skip


def _survivors(task: str, groups: Sequence[Group], limit: int) -> list[list[str]]:
    """Where a network was hardened: all of the task under the attack that its reports take."""
    attack = system_of(task).description.attack
    if not attack or not any(group.job.harden for group in groups):
        return []
    rows = []
    for group in groups:
        run, name = group.first, next(iter(group.first.metrics))
        short = shortened(task, run.task, limit)
        metric = metric_of(task, name)
        rows.append([group.name, group.job.harden or "no", metric.label, attack, shown(run.metrics[name], metric.share),
                     shown(quality_under(run, short, attack, limit)[0], metric.share)])  # fmt: skip
    return rows
