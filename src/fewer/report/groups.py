"""Runs that differ in their seed alone belong together: their mean, and how far it can be trusted."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from fewer.core.count import Count
from fewer.core.files.run_folder import Folder
from fewer.core.maths.student import student_t
from fewer.pruning.reach import count
from fewer.run.job import Job
from fewer.run.load import Trained

__all__ = ["Group", "Interval", "grouped", "interval", "run_name", "spelled"]

Interval = tuple[float, float]  # a mean, and half the width of its 95 % confidence interval, NaN where unknown


def run_name(run: Trained) -> str:
    """A run's folder name, with its parent where it is one of several seeds."""
    return f"{run.path.parent.name}/{run.path.name}" if Folder(run.path).of_a_seed else run.path.name


def interval(values: Sequence[float]) -> Interval:
    """Over seeds; one value has no interval, so none is claimed."""
    if len(values) < 2:
        return (values[0] if values else float("nan")), float("nan")
    t = student_t(len(values) - 1)
    return statistics.fmean(values), t * statistics.stdev(values) / len(values) ** 0.5


def spelled(found: Interval, show: Callable[[float], str]) -> str:
    """A mean with its interval, or alone."""
    mean, half = found
    if mean != mean:
        return "-"
    return show(mean) if half != half else f"{show(mean)} ± {show(float(f'{half:.2g}'))}"


@dataclass(frozen=True)
class Group:
    """Runs of one job under several seeds; most often just one."""

    name: str
    runs: tuple[Trained, ...]

    @property
    def first(self) -> Trained:
        """The one that is shown where one is enough."""
        return self.runs[0]

    @property
    def job(self) -> Job:
        return self.first.job

    @cached_property
    def count(self) -> Count:
        """All parameters and the prunable ones, and what is left of them."""
        return count(self.first.task, self.first.modules, self.first.mask)

    @property
    def weights(self) -> int:
        """All parameters, biases and norms included."""
        return self.count.weights

    @property
    def kept(self) -> int:
        """Of them, what is left."""
        return self.count.kept

    @property
    def sparsity(self) -> float:
        """Share of all parameters that is gone."""
        return 1.0 - self.count.density

    def metric(self, name: str) -> Interval:
        """A metric over the seeds."""
        return interval([run.metrics[name] for run in self.runs if name in run.metrics])


def grouped(runs: Sequence[Trained]) -> list[Group]:
    """In the order given, each with its own name."""
    by_job: dict[Job, list[Trained]] = {}
    for run in runs:
        by_job.setdefault(dataclasses.replace(run.job, seeds=(0,)), []).append(run)
    found: list[Group] = []
    for members in by_job.values():
        path = members[0].path
        seeds = Folder(path).of_a_seed
        name = path.parent.name if seeds else path.name
        if len(members) == 1 and seeds:
            name = run_name(members[0])
        taken = [group.name for group in found]
        found.append(Group(name if name not in taken else f"{path.parent.name}/{path.name}", tuple(members)))
    return found
