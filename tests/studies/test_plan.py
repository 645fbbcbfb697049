"""How long a study takes is told before it starts, and what the papers trained can be started."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from fewer.cli import main
from fewer.core.engines.base import Engine
from fewer.core.errors import UserError
from fewer.run.options import job_of
from fewer.studies.order import Order, studies
from fewer.studies.pieces import silent
from fewer.studies.plan import Planned, estimate, planned, spelled
from tests.studies.toy_study import NAME, Toy

PLANNED = [name for name, study in studies().items() if study.plan]
DATA = {"vision": "digits"}  # where the paper's own cannot be here: the embedded ones


def blobs() -> Engine:
    return job_of("tests.toys:Blobs", {"batch": 4}).build()


def never() -> Engine:
    raise AssertionError("a heavy training was made without a GPU")


def trainings() -> list[Planned]:
    return [Planned("small", 1000, blobs), Planned("many", 500, blobs, times=4)]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Toy:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return Toy(rows=[[1]], trainings=trainings).install(monkeypatch, plan=True)


def asked(tmp_path: Path, *words: str) -> int:
    return main(["reproduce", NAME, "--scale", "paper", "--out", str(tmp_path), *words])


def test_an_estimate_names_every_training_its_seconds_and_all_of_them(
    toy: Toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(tmp_path, "--estimate", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["times"], one["updates"]) for one in found["trainings"]] == [
        ("small", 1, 1000), ("many", 4, 500),
    ]  # fmt: skip
    assert found["seconds"] == pytest.approx(sum(one["seconds"] for one in found["trainings"])) and found["seconds"] > 0
    assert found["in_words"] == f"{NAME} at scale paper trains for about {spelled(found['seconds'])} here, from nothing"
    assert asked(tmp_path, "--estimate") == 0
    said = capsys.readouterr().out
    assert "4 times 500 updates" in said and "all" in said and not list(tmp_path.iterdir())


def test_the_papers_own_sizes_are_estimated_before_the_study_starts(
    toy: Toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(tmp_path) == 0
    said = capsys.readouterr()
    assert "small: " in said.err and "trains for about" in said.err and "a title" in said.out
    assert asked(tmp_path, "--json") == 0
    assert capsys.readouterr().err == ""


def test_a_heavy_training_is_not_timed_without_a_gpu(toy: Toy, tmp_path: Path) -> None:
    toy.trainings = lambda: [*trainings(), Planned("large", 9, never, heavy=True)]
    found = estimate(Order(NAME, "paper", tmp_path, silent))
    assert found["seconds"] is None and found["in_words"].endswith("and 1 of 3 that were not timed")
    toy.trainings = lambda: [Planned("large", 9, never, heavy=True)]
    assert "not timed without a CUDA GPU" in estimate(Order(NAME, "paper", tmp_path, silent))["in_words"]


def test_a_study_that_trains_nothing_and_one_that_does_not_say_are_told_apart(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy.trainings = list
    assert estimate(Order(NAME, "paper", tmp_path, silent))["in_words"] == f"{NAME} at scale paper trains nothing"
    toy.install(monkeypatch)
    found = estimate(Order(NAME, "paper", tmp_path, silent))
    assert found["seconds"] is None and "does not say what it trains" in found["in_words"]


def test_without_data_an_estimate_is_refused_in_one_line_and_a_study_made_of_pieces_goes_on(
    toy: Toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacking() -> list[Planned]:
        raise UserError("no data", "files")

    toy.trainings = lacking
    assert asked(tmp_path, "--estimate") == 2
    said = capsys.readouterr()
    assert said.err == "fewer: no data; expected files\n" and said.out == ""
    assert asked(tmp_path) == 0
    assert "cannot be told here: no data" in capsys.readouterr().err


def trainings_of(study: str, out: Path) -> list[Planned]:
    return planned(Order(study, "paper", out, silent, (), DATA.get(study.partition("/")[0], "")))


def take_a_step(one: Planned, batch: int | None = None) -> None:
    """Its losses are numbers; on a CPU of a few samples, on a GPU of as many as the paper took."""
    engine = one.engine()
    engine.training = dataclasses.replace(engine.training, batch=batch or engine.training.batch)
    engine.advance(1)
    losses = engine.mean_losses()
    assert losses[~losses.isnan()].isfinite().all() and not losses.isnan().all(), one.name


TAKEN: set[tuple[str, str, int]] = set()  # several studies have the same training


@pytest.mark.parametrize("study", PLANNED)
def test_every_training_of_the_papers_starts(study: str, tmp_path: Path) -> None:
    every = trainings_of(study, tmp_path)
    assert all(one.updates > 0 and one.times > 0 for one in every)
    family = study.partition("/")[0]
    for one in every:
        if not one.heavy and (family, one.name, one.updates) not in TAKEN:
            take_a_step(one, 8)
            TAKEN.add((family, one.name, one.updates))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("study", PLANNED)
def test_every_heavy_training_of_the_papers_starts(study: str, tmp_path: Path) -> None:
    for one in trainings_of(study, tmp_path):
        if one.heavy:
            take_a_step(one)
