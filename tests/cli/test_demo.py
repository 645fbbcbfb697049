"""The demonstration: four systems, one report; a missing extra is said and not the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fewer.core.engines.base import Training
from fewer.core.errors import MissingExtra, UserError
from fewer.core.registry import systems
from fewer.pruning.pruning import Pruning
from fewer.report import demo
from fewer.report.certainty.same_job import verdict
from fewer.report.certainty.units import Interval
from fewer.report.page import Page
from fewer.run.job import Job


@contextmanager
def silent(total: int, title: str) -> Iterator[Any]:
    yield lambda line: None


def short() -> dict[str, Job]:
    return {
        "digits": Job("vision", ("network=mlp", "classes=3,7"), Training(steps=5, batch=16)),
        "phones": Job(
            "cellfree", ("access_points=20", "train_phones=200", "test_phones=50", "validation_phones=20"),
            Training(steps=5, batch=16),
        ),
    }  # fmt: skip


def test_every_system_is_demonstrated_dense_or_pruned() -> None:
    jobs = demo.jobs()
    for task in systems():
        own = [job for job in jobs.values() if job.task == task]
        pruned = [job for job in own if job.prune and not job.harden]
        assert pruned and all(len(job.seeds) > 1 for job in pruned)  # a difference has an interval
        assert all(any(not d.prune and d.settings == p.settings and d.seeds == p.seeds for d in own) for p in pruned)
    assert sum(bool(job.harden) for job in jobs.values()) == 1


def test_it_writes_packs_and_one_report_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = demo.demo(tmp_path, silent, short(), processes=1)
    text = place.read_text()
    assert "Vision: which digit" in text and "Cell-free radio" in text and "Left out" not in text
    shipped = text.split("What comes with the package")[-1]
    assert all(name in shipped for name in ("cellfree-80", "control-hopper-95", "digits-3197", "nowcast-80"))
    assert all((tmp_path / f"{name}.pack").stat().st_size > 1000 for name in short())
    monkeypatch.setattr(demo, "page_from", lambda every, runs, title, limit: Page(title))
    finished = (tmp_path / "digits" / "weights.safetensors").stat().st_mtime_ns
    demo.demo(tmp_path, silent, {"digits": short()["digits"]}, processes=1)
    assert (tmp_path / "digits" / "weights.safetensors").stat().st_mtime_ns == finished


def test_a_system_whose_extra_is_missing_is_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Job.run

    def run(self: Job, out: Path, **more: Any) -> list[dict[str, float]]:
        if self.task == "cellfree":
            raise MissingExtra("no scipy", "it installed", "pip install 'fewer[cellfree]'")
        return whole(self, out, **more)

    monkeypatch.setattr(Job, "run", run)
    told = []
    monkeypatch.setattr(demo, "page_from", lambda every, runs, title, limit: told.extend(runs) or Page(title))
    text = demo.demo(tmp_path, silent, short(), processes=1).read_text()
    assert "Left out" in text and "pip install" in text and [run.job.task for run in told] == ["vision"]


def test_a_network_does_the_job_unless_it_is_shown_to_be_worse() -> None:
    found = [Interval(-0.1, -0.15, -0.05), Interval(-0.04, -0.09, 0.01), Interval(0.1, 0.05, 0.15), Interval(0.1)]
    assert [verdict(each) for each in found] == ["no", "yes", "yes", "unknown"]


def test_the_page_says_who_does_the_job(tmp_path: Path) -> None:
    settings, seeds = ("network=mlp", "classes=3,7"), (0, 1)
    short = Training(steps=40, batch=64)
    chosen = {
        "dense": Job("vision", settings, short, seeds=seeds),
        "pruned": Job("vision", settings, short, seeds=seeds, prune=Pruning("snip", 0.5)),
        "hardened": Job("vision", settings, short, harden="fgsm:0.1", prune=Pruning("snip", 0.5)),
    }
    text = demo.demo(tmp_path, silent, chosen, processes=2).read_text()
    page = text[text.index("<h2>The same job</h2>") :]
    removed = re.search(r"<tr><td>pruned</td><td>([\d.]+) %</td>.*?<td>(yes|no)</td></tr>", page)
    assert removed and "of 1 pruned networks" in page
    assert f"{removed[1]} % fewer weights" in text  # one share throughout, of all weights
    assert (tmp_path / "pruned.pack").exists() and (tmp_path / "pruned" / "seed-1" / "metrics.json").exists()


def test_any_other_wrong_input_is_not_swallowed(tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "letter.txt").write_text("mine")
    with pytest.raises(UserError, match=r"letter\.txt"):
        demo.demo(tmp_path, silent, short(), processes=1)
