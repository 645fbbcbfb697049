"""A report on finished runs, a chapter a task: what was trained, how it went, what is left, how it stands an attack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.core.files.run_folder import Folder
from fewer.core.registry import system_of
from fewer.report.attacks import budgets
from fewer.report.certainty.compare import verdicts
from fewer.report.chapter import chapter
from fewer.report.groups import grouped, run_name
from fewer.report.measured import Measured, measure
from fewer.report.page import Page, heading, items, table, words
from fewer.report.summary import summary
from fewer.run.load import Trained

__all__ = ["measured_of", "page_from", "page_of", "run_name"]

_FEW = 2  # names in a title


def measured_of(runs: Sequence[Trained], attacks: Sequence[str] = (), limit: int = 500) -> list[Measured]:
    """Every task's runs; attacks are counted on the first `limit` test samples, and without any named each task has
    its own. The single word "none" leaves attacks out."""
    for attack in attacks:
        if attack != "none":
            budgets(attack)  # a wrong one is refused before minutes are spent
    tasks = dict.fromkeys(run.job.task for run in runs)
    return [measure(task, grouped([run for run in runs if run.job.task == task]), attacks, limit) for task in tasks]


def page_of(
    runs: Sequence[Trained], title: str, attacks: Sequence[str] = (), limit: int = 500, *, compare: bool = False
) -> Page:
    """The page: a summary, a chapter for each task, how to read it, and where the numbers come from."""
    return page_from(measured_of(runs, attacks, limit), runs, title, limit=limit, compare=compare)


def page_from(
    every: Sequence[Measured], runs: Sequence[Trained], title: str, *, limit: int = 500, compare: bool = False
) -> Page:
    """The same of what was measured before."""
    count = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    page = Page(title or _titled(every), f"{count}; everything below was measured from their files, on this machine.")
    found = [verdict for one in every for verdict in verdicts(one)] if compare else []
    said = [verdict.sentence for verdict in sorted(found, key=lambda verdict: not verdict.real)]
    real = [heading(f"{sum(verdict.real for verdict in found)} of {len(said)} differences are real"), items(said)]
    page.add("Summary", *(real if said else []), *summary(every))
    for one in every:
        page.add(system_of(one.task).description.heading, *chapter(one, limit))
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


def _titled(every: Sequence[Measured]) -> str:
    """What is shown, where nobody gave it a title."""
    names = [group.name for one in every for group in one.groups]
    return f"{' and '.join(names) if len(names) <= _FEW else f'{len(names)} networks'}, measured"


def _reading() -> list[str]:
    return [
        words(
            "Metrics are of the test split, after the last step or with the weights that validation chose: no "
            "checkpoint was picked by looking at them. Brackets are 95 % intervals: over seeds (Student's t) where "
            "there are several, else over the units of the test split (Wilson's for right and wrong, a bootstrap for "
            "other figures), which says nothing of what another seed would have given. Changes against dense are "
            "paired where both were judged on the same units."
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
