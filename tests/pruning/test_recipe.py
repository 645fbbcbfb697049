"""Pruning in words: the same ones on the command line, in Python and in a grid."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

import fewer
from fewer.cli.verbs import train
from fewer.core.errors import UserError
from fewer.pruning.criteria import METHODS
from fewer.pruning.pruning import Pruning
from fewer.pruning.recipe import parse_prune
from fewer.run.job import Job
from fewer.sweep.point import point_of

WORDS = [*METHODS, "none", "lottery,rate=0.5,sparsity=0.75", "lamp,when=gradual,sparsity=0.5"]


def command_line(prune: str, harden: str) -> Job:
    parser = argparse.ArgumentParser()
    train.add(parser)
    job: Job = train.job_of(
        parser.parse_args(["tests.toys:Blobs", "--prune", prune, "--harden", harden, "--out", "x", "--steps", "3"])
    )
    return job


def python(prune: str, harden: str, monkeypatch: pytest.MonkeyPatch) -> Job:
    jobs: list[Job] = []
    monkeypatch.setattr(Job, "run", lambda job, out: jobs.append(job))
    monkeypatch.setattr("fewer.run.api.load", lambda out: None)
    fewer.train("tests.toys:Blobs", "x", prune=prune, harden=harden, steps=3)
    return jobs[0]


@pytest.mark.parametrize("harden", ["none", "pgd:0.1"])
@pytest.mark.parametrize("prune", WORDS)
def test_every_door_understands_the_same_words(prune: str, harden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = command_line(prune, harden)
    assert asked == python(prune, harden, monkeypatch)
    assert asked == point_of({"task": "tests.toys:Blobs", "steps": 3, "prune": prune, "harden": harden}, {}).job


def test_lottery_is_magnitude_in_rounds_and_dense_is_no_pruning() -> None:
    assert parse_prune("lottery,rate=0.5", ["sparsity=0.75"]) == Pruning("magnitude", 0.75, when="rounds", rate=0.5)
    assert parse_prune("dense") is parse_prune("none") is parse_prune("") is parse_prune(None) is None


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("lotery", (), "did you mean 'lottery'"),
        ("snip,sparsity=0.5", ("sparsity=0.9",), "one sparsity"),
        ("lottery,when=gradual", (), "one when"),
        ("dense,scope=layer", (), "name a method"),
    ],
)
def test_words_that_say_two_things_or_none_are_one_line(text: str, more: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse_prune(text, more)


def test_a_lottery_ticket_is_trained_from_python(tmp_path: Path) -> None:
    run = fewer.train("tests.toys:Blobs", tmp_path / "run", prune="lottery,sparsity=0.5", steps=3)
    assert run.job.prune is not None and run.job.prune.when == "rounds"
    assert sum(int(kept.sum()) for kept in run.mask["net"].values()) == 28  # of 4 * 8 + 8 * 3
