"""The demonstration: four systems, one report; a missing extra is said and not the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fewer.core.engines.base import Training
from fewer.core.errors import MissingExtra, UserError
from fewer.core.registry import systems
from fewer.report import demo
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
    assert {job.task for job in jobs.values()} == set(systems())
    assert all(any(job.prune for job in jobs.values() if job.task == task) for task in systems())


def test_it_writes_packs_and_one_report_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = demo.demo(tmp_path, silent, short())
    text = place.read_text()
    assert "Vision: which digit" in text and "Cell-free radio" in text and "Left out" not in text
    shipped = text.split("What comes with the package")[-1]
    assert all(name in shipped for name in ("cellfree-80", "control-hopper-95", "digits-3197", "nowcast-80"))
    assert all((tmp_path / f"{name}.pack").stat().st_size > 1000 for name in short())
    monkeypatch.setattr(demo, "page_of", lambda runs, title, limit: Page(title))
    finished = (tmp_path / "digits" / "weights.safetensors").stat().st_mtime_ns
    demo.demo(tmp_path, silent, {"digits": short()["digits"]})
    assert (tmp_path / "digits" / "weights.safetensors").stat().st_mtime_ns == finished


def test_a_system_whose_extra_is_missing_is_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Job.run

    def run(self: Job, out: Path, **more: Any) -> list[dict[str, float]]:
        if self.task == "cellfree":
            raise MissingExtra("no scipy", "it installed", "pip install 'fewer[cellfree]'")
        return whole(self, out, **more)

    monkeypatch.setattr(Job, "run", run)
    told = []
    monkeypatch.setattr(demo, "page_of", lambda runs, title, limit: told.extend(runs) or Page(title))
    text = demo.demo(tmp_path, silent, short()).read_text()
    assert "Left out" in text and "pip install" in text and [run.job.task for run in told] == ["vision"]


def test_any_other_wrong_input_is_not_swallowed(tmp_path: Path) -> None:
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "letter.txt").write_text("mine")
    with pytest.raises(UserError, match=r"letter\.txt"):
        demo.demo(tmp_path, silent, short())
