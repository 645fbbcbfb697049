"""One parser: the same words through the command line, Python and a grid are the same job, or the same error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fewer
from fewer.cli import parser
from fewer.cli.verbs import train
from fewer.core.errors import UserError
from fewer.pruning.recipe import METHODS
from fewer.run.job import Job
from fewer.run.options import KEYS, job_of, parse_seeds
from fewer.sweep.grid import grid_of

Words = dict[str, Any]
BLOBS = "tests.toys:Blobs"


def command_line(task: str, words: Words, monkeypatch: pytest.MonkeyPatch) -> Job:
    written = ["train", task, "--out", "x"]
    for key, value in words.items():
        option = {"settings": "--set", "start_from": "--from"}.get(key, "--" + key.replace("_", "-"))
        for part in [f"{k}={v}" for k, v in value.items()] if key == "settings" else [value]:
            written += [option] if part is True else [option, str(part)]
    return asked(monkeypatch, lambda: train.run(parser().parse(written)))


def python(task: str, words: Words, monkeypatch: pytest.MonkeyPatch) -> Job:
    return asked(monkeypatch, lambda: fewer.train(task, "x", **words))


def grid(task: str, words: Words, monkeypatch: pytest.MonkeyPatch) -> Job:
    table = {"task": task, **{"set" if key == "settings" else key: value for key, value in words.items()}}
    (point,) = grid_of({"base": table}).points
    return point.placed()


class Reached(Exception):
    """The job is about to be trained."""


def asked(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> Job:
    """The job that a door would train."""
    jobs: list[Job] = []

    def run(job: Job, *_: object, **__: object) -> None:
        jobs.append(job)
        raise Reached

    monkeypatch.setattr(Job, "run", run)
    with pytest.raises(Reached):
        work()
    return jobs[0]


DOORS = (command_line, python, grid)
SAID: list[tuple[str, Words]] = [
    (BLOBS, {}),
    *[(BLOBS, {"steps": 3, "prune": method, "harden": kind}) for method in METHODS for kind in ("none", "pgd:0.1")],
    (BLOBS, {"prune": "lottery,rate=0.5", "sparsity": 0.75}),
    (BLOBS, {"prune": "lamp,when=gradual,sparsity=0.5", "seeds": 3, "start_from": "runs/other"}),
    (BLOBS, {"optimizer": "sgd,lr=0.5,momentum=0.5", "batch": 7, "precision": "float64", "device": "cpu"}),
    (BLOBS, {"validate_every": 10, "patience": 2, "engine": "plain", "compile": True}),
    ("vision", {}),
    ("vision", {"optimizer": "adam,lr=0.1", "settings": {"network": "mlp"}}),
]
WRONG: list[tuple[str, Words]] = [
    ("visoin", {}),
    (BLOBS, {"steps": "many"}),
    (BLOBS, {"steps": -1}),
    (BLOBS, {"patience": 2}),
    (BLOBS, {"device": "gpu"}),
    (BLOBS, {"precision": "float8"}),
    (BLOBS, {"engine": "fast"}),
    (BLOBS, {"seeds": "a-b"}),
    (BLOBS, {"sparsity": 0.5}),
    (BLOBS, {"prune": "snipp"}),
    (BLOBS, {"prune": "snip", "sparsity": "half"}),
    (BLOBS, {"prune": "snip,sparsity=0.9", "sparsity": 0.5}),
    (BLOBS, {"harden": "pgd"}),
    (BLOBS, {"optimizer": "adam,lrr=1"}),
    (BLOBS, {"optimizer": "adamm"}),
    (BLOBS, {"settings": {"network": "mlp"}}),
    ("vision", {"settings": {"netwrk": "mlp"}}),
]


@pytest.mark.parametrize(("task", "words"), SAID, ids=str)
def test_the_same_words_are_the_same_job_through_every_door(
    task: str, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [door(task, words, monkeypatch) for door in DOORS] == [job_of(task, words)] * 3


@pytest.mark.parametrize(("task", "words"), WRONG, ids=str)
def test_the_same_mistake_is_the_same_line_through_every_door(
    task: str, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = []
    for door in DOORS:
        with pytest.raises(UserError) as error:
            door(task, words, monkeypatch)
        lines.append(str(error.value))
    assert lines == lines[:1] * 3 and "\n" not in lines[0]


def test_every_word_has_an_option_of_the_command_line() -> None:
    known = {action.dest for action in parser().verbs["train"]._actions}
    assert known - set(KEYS) == {"help", "out", "threads", "log", "json"} and set(KEYS) <= known


def test_an_unknown_word_in_python_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'steps'"):
        fewer.train(BLOBS, tmp_path / "run", stepz=3)  # type: ignore[call-arg]


def test_of_several_seeds_the_first_is_given_back_with_all_of_them(tmp_path: Path) -> None:
    assert parse_seeds("0-2,7") == parse_seeds([0, 1, 2, 7]) == (0, 1, 2, 7)
    run = fewer.train(BLOBS, tmp_path / "run", seeds="0-2", steps=2)
    assert [part.job.seeds for part in run.replicas] == [(0,), (1,), (2,)] and run.path == run.replicas[0].path


def test_a_base_with_several_seeds_says_where_they_belong() -> None:
    with pytest.raises(UserError, match="axes"):
        grid_of({"base": {"task": BLOBS, "seed": "0-4"}})
