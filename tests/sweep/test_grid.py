"""Grid files: what they multiply, what they leave out, and what they say about a mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fewer.core.errors import UserError
from fewer.sweep.grid import grid_of, read_grid
from fewer.sweep.plan import units_of
from fewer.sweep.point import Point

BASE: dict[str, Any] = {"task": "tests.toys:Blobs", "steps": 5, "batch": 8}


def test_axes_multiply_and_dense_points_differ_in_no_sparsity() -> None:
    axes = {"prune": ["dense", "snip"], "sparsity": [0.5, 0.9], "seed": "0-2"}
    points = grid_of({"base": BASE, "axes": axes}).points
    assert len(points) == 3 + 6
    assert len({point.name for point in points}) == 9
    assert [point.labels for point in points if point.job.prune is None] == [
        {"prune": "dense", "seed": seed} for seed in range(3)
    ]
    assert {point.job.prune.sparsity for point in points if point.job.prune} == {0.5, 0.9}


def test_points_are_added_excluded_and_settled_by_task() -> None:
    content = {
        "base": {"steps": 5},
        "axes": {"task": ["tests.toys:Blobs", "vision"], "seed": [0, 1]},
        "points": [{"task": "vision", "prune": "lottery,rate=0.5", "sparsity": 0.75, "seed": "3"}],
        "exclude": [{"task": "tests.toys:Blobs", "seed": 1}],
        "task": {"vision": {"batch": 7, "set": {"network": "cnn0"}, "optimizer": {"lr": 0.5}}},
    }
    points = grid_of(content).points
    assert [(point.job.task, point.job.seeds[0]) for point in points] == [
        ("tests.toys:Blobs", 0), ("vision", 0), ("vision", 1), ("vision", 3),
    ]  # fmt: skip
    last = points[-1].job
    assert last.training.batch == 7 and last.settings == ("network=cnn0",) and last.training.optimizer.lr == 0.5
    assert last.training.optimizer.warmup == 100  # what the task recommends stays
    assert last.prune is not None and (last.prune.method, last.prune.when, last.prune.rate) == (
        "magnitude",
        "rounds",
        0.5,
    )


def test_a_point_is_the_same_after_a_journey_as_json() -> None:
    axes = {"prune": ["grasp"], "optimizer.lr": [0.1], "device": ["cuda"]}
    point = grid_of({"base": BASE, "axes": axes}).points[0]
    assert point.device == "cuda" and point.job.training.device == "cpu"  # planned where there is no GPU
    assert Point.from_json(point.to_json()) == point and Point.from_json(point.to_json()).name == point.name


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown part": ({"bases": BASE}, "did you mean 'base'"),
    "an unknown key": ({"base": {**BASE, "stepz": 3}}, "did you mean 'steps'"),
    "an unknown axis": ({"base": BASE, "axes": {"sparsty": [0.5]}}, "did you mean 'sparsity'"),
    "an unknown optimiser setting": ({"base": BASE, "axes": {"optimizer.lrr": [1]}}, "did you mean 'lr'"),
    "an unknown task setting": ({"base": {"task": "vision", "set": {"netwrk": "mlp"}}}, "did you mean 'network'"),
    "an unknown task": ({"base": {"task": "visoin"}}, "did you mean 'vision'"),
    "an unknown method": ({"base": {**BASE, "prune": "snipp"}}, "did you mean 'snip'"),
    "a hardening without a budget": ({"base": {**BASE, "harden": "pgd"}}, "pgd"),
    "no task": ({"axes": {"seed": [0]}}, "task"),
    "an exclude that excludes nothing": ({"base": BASE, "exclude": [{"seed": 7}]}, "exclude"),
    "an exclude that excludes all": ({"base": BASE, "axes": {"seed": [0]}, "exclude": [{"seed": 0}]}, "without points"),
    "an empty axis": ({"base": BASE, "axes": {"seed": []}}, "seed = []"),
    "seeds that are no range": ({"base": BASE, "axes": {"seed": "a-b"}}, "0-4"),
    "steps that are a word": ({"base": {**BASE, "steps": "many"}}, "whole number"),
    "a base that is no table": ({"base": 3}, "[base]"),
    "points that are one table": ({"base": BASE, "points": {"seed": 1}}, "[[points]]"),
    "an unknown need": ({"base": BASE, "resources": {"gpu": 1}}, "did you mean 'gpus'"),
    "half a thread": ({"base": BASE, "resources": {"threads": 0.5}}, "threads"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_grid_is_one_line_with_a_cure(name: str) -> None:
    content, expected = MISTAKES[name]
    with pytest.raises(UserError) as error:
        grid_of(content)
    assert expected in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("write", [lambda path: None, lambda path: path.write_text("[base\n")])
def test_a_file_that_is_missing_or_no_toml_is_one_line(write: Callable[[Path], object], tmp_path: Path) -> None:
    write(tmp_path / "grid.toml")
    with pytest.raises(UserError):
        read_grid(tmp_path / "grid.toml")


def test_the_example_is_a_grid_of_twenty_six_points() -> None:
    example = Path(__file__).parents[2] / "examples" / "grid.toml"
    assert len(read_grid(example).points) == 3 + 3 + 2 * 9 + 2


def test_seeds_masks_and_rates_share_a_cohort_and_other_settings_do_not() -> None:
    axes = {
        "prune": ["dense", "snip", "magnitude,when=gradual"], "sparsity": [0.5], "optimizer.lr": [0.1, 0.2],
        "seed": "0-1", "batch": [4, 8], "engine": ["auto", "plain"],
    }  # fmt: skip
    grid = grid_of({"base": BASE, "axes": axes, "resources": {"cohort": 100}})
    sizes = sorted(len(unit.points) for unit in units_of(grid.points, grid.resources))
    assert sizes == [1] * 24 + [12, 12]


def test_lottery_tickets_and_other_starts_are_trained_alone() -> None:
    points = grid_of({"base": BASE, "axes": {"prune": ["lottery"], "seed": "0-3"}}).points
    assert all(len(unit.points) == 1 for unit in units_of(points, grid_of({"base": BASE}).resources))
