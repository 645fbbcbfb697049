"""Runs that differ in their seed alone belong together: their mean, and how far it can be trusted."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from fewer.core.count import Count
from fewer.core.engines.evaluate import predictor
from fewer.core.files.run_folder import Folder
from fewer.core.maths.student import student_t
from fewer.pruning.reach import count
from fewer.report.certainty.judged import judged
from fewer.report.certainty.units import Interval, Units, intervals
from fewer.run.job import Job
from fewer.run.load import Trained

__all__ = ["Group", "HalfInterval", "grouped", "interval", "over_seeds", "run_name", "spelled"]

HalfInterval = tuple[float, float]  # a mean, and half the width of its 95 % confidence interval, NaN where unknown


def run_name(run: Trained) -> str:
    """A run's folder name, with its parent where it is one of several seeds."""
    return f"{run.path.parent.name}/{run.path.name}" if Folder(run.path).of_a_seed else run.path.name


def interval(values: Sequence[float]) -> HalfInterval:
    """Over seeds, Student's; one value has no interval, so none is claimed."""
    if len(values) < 2:
        return (values[0] if values else float("nan")), float("nan")
    t = student_t(len(values) - 1)
    return statistics.fmean(values), t * statistics.stdev(values) / len(values) ** 0.5


def over_seeds(values: Sequence[float]) -> Interval:
    """The same with its ends."""
    mean, half = interval(values)
    return Interval(mean, mean - half, mean + half)


def spelled(found: Interval, show: Callable[[float], str]) -> str:
    """A figure with its interval, or alone."""
    if found.mean != found.mean:
        return "-"
    if not found.known:
        return show(found.mean)
    low, high = (show(end).removesuffix(" %") for end in found[1:])
    return f"{show(found.mean)} ({low} to {high})"


@dataclass(frozen=True)
class Group:
    """Runs of one job under several seeds; most often just one."""

    name: str
    runs: tuple[Trained, ...]
    colour: int = 0  # of everything that is drawn of it

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

    @cached_property
    def units(self) -> tuple[Units | None, ...]:
        """What each of its runs did on every unit of the test split."""
        return tuple(judged(run, run.task, predictor(run.task, run.modules, run.job.seeds[0])) for run in self.runs)

    @cached_property
    def _drawn(self) -> dict[str, tuple[float, float]]:
        """Intervals over test units, of one run."""
        units = self.units[0]
        return intervals(units) if units is not None else {}

    def metric(self, name: str) -> Interval:
        """A metric with its interval: over the seeds, or of one run over its test units."""
        found = over_seeds([run.metrics[name] for run in self.runs if name in run.metrics])
        if len(self.runs) > 1 or name not in self.first.metrics:
            return found
        return Interval(found.mean, *self._drawn.get(name, found[1:]))

    @property
    def over(self) -> str:
        """What its intervals are over, in words; empty where there are none."""
        if len(self.runs) > 1:
            return f"{len(self.runs)} seeds"
        return f"{len(units):,} test {units.word}" if (units := self.units[0]) is not None else ""

    @property
    def dense(self) -> bool:
        """Nothing was removed, and nothing hardened it: what others are compared with."""
        return self.kept == self.weights and not self.job.harden


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
        name = name if name not in taken else f"{path.parent.name}/{path.name}"
        found.append(Group(name, tuple(members), len(found)))
    return found
