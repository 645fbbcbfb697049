"""A report on finished runs, a chapter a task: what was trained, how it went, what is left, how it stands an attack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.core.files.run_folder import Folder
from fewer.core.registry import system_of
from fewer.report.attacks import budgets
from fewer.report.chapter import chapter
from fewer.report.groups import grouped, run_name
from fewer.report.page import Page, table, words
from fewer.run.load import Trained

__all__ = ["page_of", "run_name"]


def page_of(runs: Sequence[Trained], title: str, attacks: Sequence[str] = (), limit: int = 500) -> Page:
    """The page; attacks are counted on the first `limit` test samples, and without any named each task has its own.

    The single word "none" leaves attacks out.
    """
    for attack in attacks:
        if attack != "none":
            budgets(attack)  # a wrong one is refused before minutes are spent
    count = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    page = Page(title, f"{count}; everything below was measured from their files, on this machine.")
    for task in dict.fromkeys(run.job.task for run in runs):
        own = grouped([run for run in runs if run.job.task == task])
        page.add(system_of(task).description.heading, *chapter(task, own, attacks, limit))
    page.add("How to read this", *_reading())
    page.add(
        "Where the numbers come from",
        words("A run's folder holds its settings, its log and its weights; the same command gives the same bits."),
        table(
            ["run", "folder", "seed", "torch", "fewer", "commit"],
            [_origin(run) for run in runs],
        ),
    )
    return page


def _reading() -> list[str]:
    return [
        words(
            "Metrics are of the test split, after the last step or with the weights that validation chose: no "
            "checkpoint was picked by looking at them. A ± is half of a 95 % confidence interval over seeds "
            "(Student's t); where there is one seed there is none, and a difference may be luck."
        ),
        words(
            "Sizes are whole files. A pack holds the kept weights and everything needed to predict; float32 is "
            "lossless, float16 and int8 round (int8 here without calibration, which hardly changes its size). "
            "Latencies are the median of calls of one sample taken in turns on this machine, so compare them with each "
            "other and not with those of another page."
        ),
        words(
            "Attack curves show the worst that this attack found, not the worst there is: a stronger attack finds at "
            "least as much. They are drawn on a part of the test split, so their left end may differ from the table. "
            "An attack raises the task's loss; a metric that counts something else need not fall with every budget."
        ),
    ]


def _origin(run: Trained) -> list[Any]:
    versions = Folder(run.path).versions()
    commit = str(versions.get("commit", ""))[:10]
    # numbers that are names: no separators
    return [run_name(run), str(run.path), str(run.job.seeds[0]), versions.get("torch", ""), versions.get("fewer", ""),
            commit]  # fmt: skip
