"""What a person sees while a sweep runs: bars on a terminal, a line for each finished unit in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fewer.sweep.report import Done, Report
from fewer.sweep.unit import Unit

__all__ = ["watching"]

Watch = Callable[[Report, int], None]


@contextmanager
def watching(total: int, quiet: bool = False) -> Iterator[Watch]:
    """A function to call with each report and the number of points left."""
    if quiet:
        yield lambda report, left: None
    elif sys.stderr.isatty():
        yield from _bars(total)
    else:
        yield lambda report, left: _line(report, total - left, total)


def _title(unit: Unit) -> str:
    first = unit.points[0]
    words = " ".join(f"{key}={value}" for key, value in first.labels.items() if key != "seed")
    many = f"{len(unit.points)} points, " if len(unit.points) > 1 else ""
    return f"{many}{words or first.job.task} seed={first.job.seeds[0]}"


def _line(report: Report, settled: int, total: int) -> None:
    if isinstance(report, Done):
        what = report.outcome.apart and f"one by one: {report.outcome.apart}"
        bad = [failure.kind for failure in report.outcome.failures.values() if failure is not None]
        state = what or (f"{len(bad)} failed ({bad[0]})" if bad else "done")
        print(
            f"sweep {settled}/{total}  {report.unit.name}  {_title(report.unit)}  {state}", file=sys.stderr, flush=True
        )


def _bars(total: int) -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        whole = progress.add_task("points", total=total)
        bars: dict[str, Any] = {}

        def watch(report: Report, left: int) -> None:
            unit = report.unit
            progress.update(whole, completed=total - left)
            if isinstance(report, Done):
                if unit.name in bars:
                    progress.remove_task(bars.pop(unit.name))
                for name, failure in report.outcome.failures.items():
                    if failure is not None:
                        progress.console.print(f"{name} {failure.kind}: {failure.why}", markup=False)
                return
            if unit.name not in bars:
                bars[unit.name] = progress.add_task(_title(unit)[:60], total=unit.points[0].job.training.steps)
            progress.update(bars[unit.name], completed=report.step)

        yield watch
