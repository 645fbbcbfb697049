"""The demonstration: every system trained, pruned, attacked, voted, packed and reported, on embedded data alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from fewer import zoo
from fewer.core.engines.loop import Loop
from fewer.core.errors import MissingExtra
from fewer.core.files.atomic import write_atomically
from fewer.core.registry import systems
from fewer.core.system import imported
from fewer.packs.pack import load as load_pack
from fewer.packs.show import removed
from fewer.report.attacks import shortened
from fewer.report.description import metric_of
from fewer.report.page import Page, table, words
from fewer.report.runs import page_of
from fewer.run.job import Job
from fewer.run.load import Trained, load
from fewer.run.packing import pack_run

__all__ = ["demo", "jobs"]

Bar = Callable[[int, str], AbstractContextManager[Callable[[dict[str, Any]], None]]]
_LIMIT = 200  # test samples that are attacked


def jobs() -> dict[str, Job]:
    """Those of every system that has a demonstration.

    Each shows what one gets in seconds, not what a study reaches: `fewer reproduce --list` has those.
    """
    found: dict[str, Job] = {}
    for system in systems().values():
        if system.demo:
            found |= imported(system.demo)()
    return found


def demo(out: Path, bar: Bar, chosen: dict[str, Job] | None = None) -> Path:
    """Run everything into `out`; a second call goes on where the first was stopped. The report's path.

    A system whose extra is not installed is left out, and the report says so.
    """
    runs: list[Trained] = []
    left_out: dict[str, str] = {}
    for name, job in (chosen or jobs()).items():
        try:
            with bar(job.training.steps, name) as log:
                job.run(out / name, loop=Loop(on_log=log))
            runs.append(load(out / name))
        except MissingExtra as error:
            left_out[job.task] = str(error)
    page = page_of(runs, "fewer: the same job with fewer weights", limit=_LIMIT)
    page.lead = (
        "Small networks for four jobs, each trained, pruned, attacked and packed on this machine a moment ago. "
        "They show what there is to see, not how good it can get: minutes of training, little data, one seed."
    )
    _add_left_out_(page, left_out)
    _add_zoo_(page)
    for run in runs:
        light = dataclasses.replace(run, task=shortened(run.job.task, run.task, _LIMIT))
        pack_run(light, out / f"{run.path.name}.pack")
    write_atomically(out / "report.html", page.html().encode())
    return (out / "report.html").resolve()


def _add_left_out_(page: Page, left_out: dict[str, str]) -> None:
    if left_out:
        page.add("Left out", *[words(f"{task}: {why}") for task, why in left_out.items()])


def _add_zoo_(page: Page) -> None:
    """What minutes more of training reach, from the packs themselves."""
    rows = []
    for name in zoo.names():
        pack = load_pack(zoo.path(name))
        metrics = dict(pack.settings.get("metrics") or {})
        if metrics:
            first = next(iter(metrics))
            size, task = zoo.path(name).stat().st_size, str(pack.settings["task"])
            rows.append([name, task, size, f"{removed(pack):.0%}", metric_of(task, first).label, metrics[first]])
    page.add(
        "What comes with the package",
        words(
            "Networks of the same four jobs, trained for minutes instead of seconds and packed. Their metrics were "
            "counted when they were trained, on their own test splits: on larger maps and longer episodes than above."
        ),
        table(["pack", "task", "bytes", "weights removed", "first metric", ""], rows),
        words("fewer serve opens all of them in a browser: draw, click, drag and scrub."),
    )
