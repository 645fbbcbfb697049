"""Recipes: what a task says of its own training, taken by `--prune auto` through every door."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import fewer
from fewer.core.errors import Notice, UserError
from fewer.core.recipe import Recipe, affordable
from fewer.core.registry import systems, task_class
from fewer.pruning.recipe import parse_prune
from fewer.run.job import Job
from fewer.run.options import job_of, tell_if_worse
from fewer.sweep.point import point_of
from tests.toys import Blobs

CLONE = {"settings": {"algorithm": "plain-bc"}, "prune": "auto", "sparsity": 0.95}


def test_auto_takes_criterion_rate_schedule_and_engine_from_the_algorithm() -> None:
    job, dense = job_of("control", CLONE), job_of("control", {"settings": CLONE["settings"]})
    recipe = task_class("control")[0].recipe(task_class("control")[1](algorithm="plain-bc"))  # type: ignore[misc]
    assert job.prune == parse_prune(recipe.prune, ["sparsity=0.95"])
    assert job.training.optimizer == recipe.pruned["optimizer"] != dense.training.optimizer
    assert job.engine == "sparse" and job.training.steps == affordable(dense.training.steps, 0.95)


@pytest.mark.parametrize(
    "more",
    [{"engine": "plain"}, {"sparsity": 0.5}, {"only": "actor.*"}, {"prune": "auto,when=gradual"}, {"prune": "snip"}],
)
def test_steps_grow_on_kept_weights_alone(more: dict[str, Any]) -> None:
    job = job_of("control", {**CLONE, **more})
    assert job.training.steps == job_of("control", {"settings": CLONE["settings"]}).training.steps
    assert job.engine == more.get("engine", "auto")


def test_steps_that_are_given_win_and_so_do_words_beside_auto() -> None:
    job = job_of("control", {**CLONE, "steps": 7, "prune": "auto,end=0.5", "lr": 0.5})
    assert job.prune is not None and (job.training.steps, job.prune.end, job.training.optimizer.lr) == (7, 0.5, 0.5)
    with pytest.raises(UserError, match="one end"):
        job_of("control", {**CLONE, "prune": "auto,end=0.5,end=0.6"})


def test_a_grid_that_trains_on_a_gpu_spends_no_updates_of_a_cpu() -> None:
    flat = {"task": "control", "set.algorithm": "plain-bc", "prune": "auto", "sparsity": 0.95}
    here, there = (point_of({**flat, **more}, {}).job for more in ({}, {"device": "cuda"}))
    assert here == job_of("control", {**CLONE, "settings": ["algorithm=plain-bc"]})
    assert there.training.steps < here.training.steps and there.engine == "auto"


def test_updates_are_counted_by_kept_weights_and_never_fewer_than_dense_ones() -> None:
    counts = [affordable(1000, sparsity) for sparsity in (0.0, 0.2, 0.6, 0.9, 0.95, 0.99)]
    assert counts == sorted(counts) and counts[0] == 1000 < counts[2]
    assert all(type(count) is int for count in counts)


def test_a_criterion_that_is_known_to_be_worse_tells_so_once_and_the_recipe_does_not() -> None:
    with pytest.warns(Notice, match="--prune auto is the recipe"):
        tell_if_worse(job_of("control", {**CLONE, "prune": "snip"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for words in (CLONE, {**CLONE, "prune": "snip", "sparsity": 0.5}, {**CLONE, "prune": "snip,when=rigl"}):
            tell_if_worse(job_of("control", words))


@pytest.mark.parametrize("task", list(systems()))
def test_every_task_has_a_recipe_that_is_a_job(task: str) -> None:
    job = job_of(task, {"prune": "auto", "sparsity": 0.9})
    assert isinstance(job, Job) and job.prune is not None and job.prune.sparsity == 0.9


def test_a_task_without_a_recipe_is_pruned_gradually_and_trains(tmp_path: Path) -> None:
    assert Blobs.recipe(None) == Recipe(Blobs.recommended)
    run = fewer.train("tests.toys:Blobs", tmp_path / "run", prune="auto,sparsity=0.5", steps=10)
    assert run.job.prune is not None and (run.job.prune.method, run.job.prune.when) == ("lamp", "gradual")
    assert sum(int(kept.sum()) for kept in run.mask["net"].values()) == 28  # of 4 * 8 + 8 * 3
