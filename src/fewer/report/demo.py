"""The demonstration: every system trained, pruned, attacked, voted, packed and reported, on embedded data alone."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from fewer import zoo
from fewer.core.engines.loop import Loop
from fewer.core.errors import MissingExtra
from fewer.core.files.atomic import write_atomically
from fewer.core.files.run_folder import Folder
from fewer.core.registry import systems
from fewer.core.system import imported
from fewer.packs.pack import load as load_pack
from fewer.packs.show import removed
from fewer.report.attacks import shortened
from fewer.report.certainty.same_job import same_job
from fewer.report.description import metric_of, shown
from fewer.report.groups import grouped
from fewer.report.measured import Measured, measure
from fewer.report.page import Page, table, words
from fewer.report.runs import page_from
from fewer.run.job import Job
from fewer.run.load import load
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


def demo(out: Path, bar: Bar, chosen: dict[str, Job] | None = None, *, processes: int = 0) -> Path:
    """Run everything into `out`; a second call goes on where the first was stopped. The report's path.

    Trainings are independent: as many run at a time as there are cores, or `processes`. A system whose extra is not
    installed is left out, and the report says so.
    """
    alone, packs = dict[Path, Job](), dict[Path, Path]()
    for name, job in (chosen or jobs()).items():
        places = [Folder(out / name).seed(seed).path if len(job.seeds) > 1 else out / name for seed in job.seeds]
        alone |= {place: dataclasses.replace(job, seeds=(seed,)) for place, seed in zip(places, job.seeds)}
        packs[places[0]] = out / f"{name}.pack"
    left_out: dict[str, str] = {}
    measured: dict[str, Measured] = {}
    waiting = Counter(job.task for job in alone.values())
    with bar(len(alone), "trainings") as log:
        for number, (task, why) in enumerate(_trained(alone, packs, processes or os.cpu_count() or 1), 1):
            left_out |= {task: why} if why else {}
            log({"step": number})
            waiting[task] -= 1
            if not waiting[task] and task not in left_out:  # measured while others train
                own = [load(place) for place, job in alone.items() if job.task == task]
                measured[task] = measure(task, grouped(own), (), _LIMIT)
    every = [measured[task] for task in dict.fromkeys(job.task for job in alone.values()) if task in measured]
    runs = [run for one in every for group in one.groups for run in group.runs]
    page = page_from(every, runs, "fewer: the same job with fewer weights", limit=_LIMIT)
    page.lead = (
        "Small networks for four jobs, each trained, pruned, attacked and packed on this machine a moment ago. "
        "They show what there is to see, not how good it can get: seconds of training, little data, few seeds."
    )
    if any(run.job.prune for run in runs):
        page.add("The same job", *same_job(every))
        page.sections.insert(1, page.sections.pop())
    _add_left_out_(page, left_out)
    _add_zoo_(page)
    write_atomically(out / "report.html", page.html().encode())
    return (out / "report.html").resolve()


def _trained(alone: Mapping[Path, Job], packs: Mapping[Path, Path], processes: int) -> Iterator[tuple[str, str]]:
    """The task of every training as it ends, and why it was left out where it was."""
    if processes < 2 or len(alone) < 2:
        yield from (_train(job, place, packs.get(place)) for place, job in alone.items())
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        # the last systems train longest: begun first, they leave no core idle at the end
        begun = [pool.submit(_train, job, place, packs.get(place)) for place, job in reversed(list(alone.items()))]
        yield from (done.result() for done in as_completed(begun))


def _train(job: Job, place: Path, pack: Path | None) -> tuple[str, str]:
    """Also packed, where there is to be a pack of it."""
    try:
        job.run(place, loop=Loop())
    except MissingExtra as error:
        return job.task, str(error)
    if pack is not None:
        run = load(place)
        pack_run(dataclasses.replace(run, task=shortened(job.task, run.task, _LIMIT)), pack)
    return job.task, ""


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
            metric = metric_of(task, first)
            value = shown(metrics[first], metric.share)
            rows.append([name, task, f"{size:,}", f"{100 * removed(pack):.3g} %", metric.label, value])
    page.add(
        "What comes with the package",
        words(
            "Networks of the same four jobs, trained for minutes instead of seconds and packed. Their metrics were "
            "counted when they were trained, on their own test splits: on larger maps and longer episodes than above."
        ),
        table(["pack", "task", "bytes", "weights removed", "first metric", "its value"], rows),
        words("fewer serve opens all of them in a browser: draw, click, drag and scrub."),
    )
