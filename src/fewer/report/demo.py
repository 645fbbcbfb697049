"""The demonstration: four systems trained, pruned, attacked, voted, packed and reported, on embedded data alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from fewer import zoo
from fewer.core.engines.base import Training
from fewer.core.engines.loop import Loop
from fewer.core.engines.optimizer import Optimizer
from fewer.core.errors import UserError
from fewer.core.files.atomic import write_whole
from fewer.packs.pack import load as load_pack
from fewer.packs.show import removed
from fewer.pruning.pruning import Pruning
from fewer.report.attacks import shortened
from fewer.report.description import figure_of
from fewer.report.page import Page, table, words
from fewer.report.runs import page_of
from fewer.run.job import Job, Trained, load
from fewer.run.packing import pack_run

__all__ = ["demo", "jobs"]

Bar = Callable[[int, str], AbstractContextManager[Callable[[dict[str, Any]], None]]]
_LIMIT = 200  # test samples that are attacked


def jobs() -> dict[str, Job]:
    """Digits dense, with 95 % removed before training, and hardened while pruned; then the other three systems.

    Each shows what one gets in seconds, not what a study reaches: `fewer reproduce --list` has those.
    """
    return {**_vision(), **_cellfree(), **_control(), **_nowcast()}


def _vision() -> dict[str, Job]:
    network, short = ("network=mlp",), Training(steps=600, batch=128, optimizer=Optimizer(lr=2e-3, decay_from=0.5))
    gradual = Pruning("magnitude", 0.9, scope="global", when="gradual")
    return {
        "digits-dense": Job("vision", network, short),
        "digits-snip95": Job("vision", network, short, prune=Pruning("snip", 0.95)),
        "digits-hardened90": Job("vision", network, short, harden="pgd:0.1,steps=5", prune=gradual),
    }


def _cellfree() -> dict[str, Job]:
    training = Training(steps=1500, batch=100)
    return {"cellfree90": Job("cellfree", (), training, prune=Pruning("magnitude", 0.9, when="gradual"))}


def _control() -> dict[str, Job]:
    """A clone of the embedded expert, from a few of its steps."""
    settings = ("environment=hopper", "algorithm=plain-bc", "transitions=20000", "episodes=5")
    training = Training(steps=2000, batch=256, optimizer=Optimizer(lr=3e-3, decay_from=0.5))
    return {
        "control-dense": Job("control", settings, training),
        "control-snip95": Job("control", settings, training, prune=Pruning("snip", 0.95)),
    }


def _nowcast() -> dict[str, Job]:
    """Generated weather over a small map; a quota, because magnitudes alone would empty the widest layers."""
    settings = ("size=36", "width=8", "train_windows=200", "validation_windows=8", "test_windows=24")
    rule = Optimizer("adamw", lr=2e-3, weight_decay=2e-2, clip_value=2.0, warmup=30, decay_from=0.3)
    prune = Pruning("magnitude", 0.8, when="gradual", layer_quota=0.02, samples=8)
    return {"nowcast80": Job("nowcast", settings, Training(steps=150, batch=8, optimizer=rule), prune=prune)}


def demo(out: Path, bar: Bar, chosen: dict[str, Job] | None = None) -> Path:
    """Run everything into `out`; a second call goes on where the first was stopped. The report's path.

    A system whose extra is not installed is left out, and the report says so.
    """
    runs: list[Trained] = []
    left_out: dict[str, str] = {}
    for name, job in (chosen or jobs()).items():
        try:
            with bar(job.training.steps, name) as speak:
                job.run(out / name, loop=Loop(on_log=speak))
            runs.append(load(out / name))
        except UserError as error:
            if "pip install" not in str(error):
                raise
            left_out[job.task] = str(error)
    page = page_of(runs, "fewer: the same job with fewer weights", limit=_LIMIT)
    page.lead = (
        "Small networks for four jobs, each trained, pruned, attacked and packed on this machine a moment ago. "
        "They show what there is to see, not how good it can get: minutes of training, little data, one seed."
    )
    _add_left_out_(page, left_out)
    _add_zoo_(page)
    for run in runs:
        light = dataclasses.replace(run, task=shortened(run.task, _LIMIT))
        pack_run(light, out / f"{run.path.name}.pack")
    write_whole(out / "report.html", page.html().encode())
    return (out / "report.html").resolve()


def _add_left_out_(page: Page, left_out: dict[str, str]) -> None:
    if left_out:
        page.add("Left out", *[words(f"{task}: {why}") for task, why in left_out.items()])


def _add_zoo_(page: Page) -> None:
    """What minutes more of training reach, from the packs themselves."""
    rows = []
    for name in zoo.names():
        pack = load_pack(zoo.path(name))
        figures = dict(pack.settings.get("figures") or {})
        if figures:
            first = next(iter(figures))
            size = zoo.path(name).stat().st_size
            rows.append(
                [name, pack.settings["task"], size, f"{removed(pack):.0%}", figure_of(first)[0], figures[first]]
            )
    page.add(
        "What comes with the package",
        words(
            "Networks of the same four jobs, trained for minutes instead of seconds and packed. Their figures were "
            "counted when they were trained, on their own test splits: on larger maps and longer episodes than above."
        ),
        table(["pack", "task", "bytes", "weights removed", "first figure", ""], rows),
        words("fewer serve opens all of them in a browser: draw, click, drag and scrub."),
    )
