"""Points in lock-step give the numbers that each gives alone, and one that fails does so alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from fewer.run.load import load
from fewer.sweep.grid import Grid, grid_of
from fewer.sweep.run import Sweep, Where
from tests import toys

BASE: dict[str, Any] = {
    "task": "tests.toys:Blobs",
    "steps": 40,
    "batch": 8,
    "precision": "float64",
    "prune.samples": 20,
}
HERE = Where("inline")
Rows = list[dict[str, Any]]


def swept(content: dict[str, Any], out: Path, **options: Any) -> tuple[Grid, Rows]:
    grid = grid_of(content)
    return grid, Sweep(grid, out, HERE).run(**options)


def test_a_cohort_of_seeds_masks_and_rates_trains_each_point_as_alone(tmp_path: Path) -> None:
    axes = {
        "prune": ["dense", "magnitude", "random,when=set,every=7", "magnitude,when=gradual,every=5"],
        "sparsity": [0.3, 0.6], "optimizer.lr": [0.01, 0.003], "seed": "0-1",
    }  # fmt: skip
    grid, rows = swept({"base": BASE, "axes": axes, "resources": {"cohort": 100}}, tmp_path / "together")
    assert [row["why"] for row in rows] == [""] * 28
    configs = {row["point"]: json.loads((tmp_path / f"together/points/{row['point']}/config.json").read_text())
               for row in rows}  # fmt: skip
    assert all(len(config["cohort"]) == 28 for config in configs.values())
    for point in grid.points[::3]:
        metrics = point.placed().run(tmp_path / point.name)[0]
        row = next(row for row in rows if row["point"] == point.name)
        assert row["metrics"] == pytest.approx(metrics, abs=1e-9)
        alone = load_file(tmp_path / point.name / "weights.safetensors")
        beside = load_file(tmp_path / "together" / "points" / point.name / "weights.safetensors")
        assert max(float((alone[key] - beside[key]).abs().max()) for key in alone) < 1e-9


def test_a_point_of_a_cohort_is_a_run_like_any_other(tmp_path: Path) -> None:
    grid, _ = swept({"base": BASE, "axes": {"prune": "snip", "sparsity": 0.5, "seed": "0-2"}}, tmp_path / "sweep")
    run = load(tmp_path / "sweep" / "points" / grid.points[1].name)
    assert run.job == grid.points[1].job and run.metrics["accuracy"] > 0.2 and run.mask
    lines = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["step"] == 40 and isinstance(lines[-1]["loss/net"], float)


def test_points_of_a_cohort_end_with_the_weights_that_validation_chose(tmp_path: Path) -> None:
    content = {"base": {**BASE, "validate_every": 10}, "axes": {"seed": "0-1"}}
    grid, rows = swept(content, tmp_path / "together")
    for point, row in zip(grid.points, rows):
        alone = point.placed().run(tmp_path / point.name)[0]
        assert row["metrics"] == pytest.approx(alone, abs=1e-9) and alone["chosen_step"] in (10, 20, 30, 40)


def test_a_replica_that_diverges_is_one_row_and_the_others_are_untouched(tmp_path: Path) -> None:
    sgd = {**BASE, "optimizer": {"kind": "sgd"}}
    axes = {"optimizer.lr": [0.01, 1e300], "seed": "0-1"}
    _, rows = swept({"base": sgd, "axes": axes}, tmp_path / "both")
    assert [row["status"] for row in rows] == ["done", "done", "failed", "failed"]
    assert all(row["why"].startswith("diverged: weights that are not finite") for row in rows[2:])
    _, calm = swept({"base": sgd, "axes": {**axes, "optimizer.lr": [0.01, 0.02]}}, tmp_path / "calm")
    assert rows[:2] == calm[:2]
    assert not list((tmp_path / "both" / "cohorts").iterdir())


def test_a_replica_that_cannot_be_pruned_is_one_row(tmp_path: Path) -> None:
    axes = {"prune": "magnitude", "sparsity": [0.5, 0.995], "seed": "0-1"}
    _, rows = swept({"base": BASE, "axes": axes}, tmp_path)
    assert [row["status"] for row in rows] == ["done", "done", "failed", "failed"]
    assert rows[2]["why"].startswith("user error:")


def test_a_task_that_cannot_be_stacked_is_trained_one_by_one(tmp_path: Path) -> None:
    content = {"base": {**BASE, "task": "tests.sweep.tasks:Unstackable"}, "axes": {"seed": "0-2"}}
    grid, rows = swept(content, tmp_path)
    assert [row["status"] for row in rows] == ["done"] * 3
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["units"] == [[point.name] for point in grid.points]


def test_out_of_memory_and_a_wrong_answer_are_rows_of_their_kind(tmp_path: Path) -> None:
    content = {
        "base": BASE,
        "points": [
            {"task": "tests.sweep.tasks:Hungry"},
            {"task": "tests.toys:Fit", "harden": "trades:0.1"},
            {"task": "tests.toys:Fit"},
        ],
    }
    _, rows = swept(content, tmp_path)
    assert [row["status"] for row in rows] == ["failed", "failed", "done"]
    assert rows[0]["why"].startswith("out of memory:") and "Fit has no" in rows[1]["why"]
    table = (tmp_path / "table.csv").read_text().splitlines()
    assert len(table) == 4 and table[1].split(",")[1] == "failed" and table[3].split(",")[1] == "done"


def test_failures_are_tried_again_only_when_asked_and_finished_points_never(tmp_path: Path, monkeypatch: Any) -> None:
    content = {"base": {**BASE, "optimizer": {"kind": "sgd"}}, "axes": {"optimizer.lr": [0.01, 1e300], "seed": "0-1"}}
    _, rows = swept(content, tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("points/*/*")}
    assert stamps
    trained: list[int] = []
    real = toys.Blobs.networks
    monkeypatch.setattr(toys.Blobs, "networks", lambda self: trained.append(1) or real(self))
    assert swept(content, tmp_path)[1] == rows and not trained
    assert swept(content, tmp_path, retry_failed=True)[1] == rows and trained
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("points/*/*")} == stamps
    larger = {**content, "axes": {**content["axes"], "seed": "0-2"}}
    more = swept(larger, tmp_path)[1]
    assert [row for row in more if row["settings"]["seed"] < 2] == rows
    assert [row["status"] for row in more if row["settings"]["seed"] == 2] == ["done", "failed"]
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_a_folder_of_something_else_and_other_threads_are_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="letter"):
        swept({"base": BASE}, tmp_path)
    swept({"base": BASE}, tmp_path / "sweep")
    with pytest.raises(ValueError, match="threads"):
        swept({"base": BASE, "resources": {"threads": 2}}, tmp_path / "sweep")
