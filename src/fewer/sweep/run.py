"""A sweep: plan, hand units out, note what became of them, and leave one table."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewer.core.errors import UserError
from fewer.core.files.atomic import clear_parts
from fewer.core.files.run_folder import Folder
from fewer.sweep.executors import PLACES
from fewer.sweep.executors.inline import work_inside
from fewer.sweep.executors.processes import work_here
from fewer.sweep.grid import Grid
from fewer.sweep.plan import Plan
from fewer.sweep.report import Done, Report
from fewer.sweep.results import Results
from fewer.sweep.unit import Unit

__all__ = ["PLACES", "Sweep", "Where"]

_EVERY = 5.0  # seconds between tables while points come in


@dataclass(frozen=True)
class Where:
    """Where units are trained."""

    on: str = "processes"  # of this machine; "ray"; or "inline", in this very process
    address: str | None = None  # of a Ray cluster; None: this machine
    processes: int = 0  # 0 is one for each core, or one alone where a GPU is used

    def __post_init__(self) -> None:
        if self.on not in PLACES:
            raise UserError(f"--on {self.on}", f"one of {', '.join(PLACES)}")
        if self.processes < 0:
            raise UserError(f"--processes {self.processes}", "at least 1")
        if self.address and self.on != "ray":
            raise UserError(f"--address {self.address} with --on {self.on}", "--on ray")


class Sweep:
    """A grid in a folder. `run` may be killed at any moment and called again, here or in another process."""

    def __init__(self, grid: Grid, out: str | Path, where: Where = Where()) -> None:  # noqa: B008  frozen
        self.grid, self.out, self.where = grid, Path(out), where
        self.results = Results(self.out)
        if where.on != "ray":
            for point in {point.device: point for point in grid.points}.values():
                point.placed()  # a device that is not there is said now

    def run(
        self, *, retry_failed: bool = False, watch: Callable[[Report, int], None] | None = None
    ) -> list[dict[str, Any]]:
        """Train what is not finished; the rows of the table. `watch` sees each report and how many points are left."""
        strangers = self._strangers()
        if strangers:
            raise UserError(
                f"{self.out} holds {strangers[0]!r} but no sweep", "an empty or new folder", "another --out"
            )
        with Folder(self.out).locked():
            clear_parts(self.out)
            names = [point.name for point in self.grid.points]
            for name in names if retry_failed else ():
                self.results.forgive(name)
            plan = Plan(self.grid, self.results)
            settled = {name for name in names if self._settled(name)}
            units = deque[Unit]()
            for unit in plan.units:
                if all(point.name in settled for point in unit.points):
                    self.results.clear_cohort(unit.name)  # a kill may have come just before this
                else:
                    units.append(unit)
            left = len(names) - len(settled)
            told = time.monotonic()
            with closing(self._work(units)) as reports:
                for report in reports:
                    if isinstance(report, Done):
                        left -= self._note(report, plan, units, settled)
                        if time.monotonic() - told > _EVERY:
                            self.results.write_tables(self.grid.points)
                            told = time.monotonic()
                    if watch is not None:
                        watch(report, left)
            return self.results.write_tables(self.grid.points)

    def _settled(self, name: str) -> bool:
        return self.results.folder(name).finished or self.results.failure(name) is not None

    def _strangers(self) -> list[str]:
        if not self.out.exists() or (self.out / "plan.json").exists():
            return []
        return sorted(path.name for path in self.out.iterdir() if not path.name.startswith("."))

    def _note(self, done: Done, plan: Plan, units: deque[Unit], settled: set[str]) -> int:
        """Keep what a unit brought; how many points are newly settled."""
        if done.outcome.apart:
            units.extendleft(reversed(plan.split(done.unit)))
            self.results.clear_cohort(done.unit.name)
            return 0
        for name, failure in done.outcome.failures.items():
            if failure is not None and not self.results.folder(name).finished:
                self.results.note(name, failure)
        self.results.clear_cohort(done.unit.name)
        new = {point.name for point in done.unit.points} - settled
        settled |= new
        return len(new)

    def _work(self, units: deque[Unit]) -> Generator[Report, None, None]:
        resources = self.grid.resources
        if self.where.on == "ray":
            from fewer.sweep.executors.ray_pool import work_on_ray

            return work_on_ray(units, self.out, resources, self.where.address)
        if self.where.on == "inline":
            return work_inside(units, self.out, threads=resources.threads)
        on_gpu = any(point.device.startswith("cuda") for point in self.grid.points)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        processes = self.where.processes or (1 if on_gpu else max(1, cores // resources.threads))
        return work_here(units, self.out, processes=processes, threads=resources.threads, retries=resources.retries)
