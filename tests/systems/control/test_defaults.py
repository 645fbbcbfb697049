"""The study of defaults: every training a piece, and a table of what is there."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from fewer.core.errors import UserError
from fewer.run.job import Job
from fewer.run.options import job_of
from fewer.studies.order import Order
from fewer.studies.pieces import pieces_of, silent
from fewer.studies.study import reproduce
from fewer.systems.control.studies import defaults as defaults_module
from fewer.systems.control.studies.defaults import WAYS, defaults
from fewer.systems.control.studies.training.lockstep import in_lockstep


def test_a_piece_is_a_training_that_is_found_again_and_the_table_shows_pairs_alone(tmp_path: Path) -> None:
    order = Order("control/defaults", "quick", tmp_path, silent)
    every = pieces_of(order).every
    assert len(every) == 3 * len(WAYS)
    result = reproduce(order)
    assert [row[0] for row in result.rows] == ["plain-bc", "bc", "bcq"]
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "defaults-quick").glob("*.json")}
    assert set(kept) == {f"{name}.json" for name in every}
    row = json.loads((tmp_path / "defaults-quick" / "hopper-bc-auto-0.json").read_text())
    config = json.loads((tmp_path / "defaults-quick/runs/hopper-bc-auto-0/config.json").read_text())
    assert config["prune"]["sparsity"] == 0.9 and config["training"]["steps"] == row["steps"] == 40
    every["hopper-bc-auto-0"].make()
    assert kept == {path.name: path.stat().st_mtime_ns for path in (tmp_path / "defaults-quick").glob("*.json")}


def test_shares_are_of_the_better_dense_mean(tmp_path: Path) -> None:
    folder = tmp_path / "defaults-full"
    folder.mkdir()
    for way, scores in {"dense": (80.0, 100.0), "long": (100.0,), "auto": (93.0, 97.0)}.items():
        for seed, score in enumerate(scores):
            row = {"environment": "walker2d", "algorithm": "plain-bc", "way": way, "seed": seed, "logs": "walker.hdf5",
                   "steps": 9, "score": score, "lowest": score - 5, "processor_seconds": 3.0 + seed,
                   "wall_seconds": 4.0}  # fmt: skip
            (folder / f"{way}-{seed}.json").write_text(json.dumps(row))
    (tmp_path / "ABOUT.txt").write_text("logs of a\nwalk\n")
    result = defaults(Order("control/defaults", "full", tmp_path, silent, data=str(tmp_path)))
    (row,) = result.rows
    assert result.notes[-1] == "logs of a walk"
    assert row[:2] == ["plain-bc", "Walker2d"] and row[3] == "100.0"
    assert row[5] == "95.0" and row[6] == "75, 88" and row[8] == "2, 1, 2"


def test_another_environment_or_way_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="hopper"):
        pieces_of(Order("control/defaults", "full", tmp_path, silent, ("environments=ant",)))


def test_on_cuda_a_piece_is_all_missing_seeds_in_lock_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def trained(job: Job, out: Path, **how: Any) -> list[dict[str, float]]:
        out.mkdir(parents=True)
        asked.append((job.seeds, job.training.steps, out.name, how["device"]))
        return [{"score": 90.0 + seed, "score_lowest": 1.0} for seed in job.seeds]

    monkeypatch.setattr(defaults_module, "_device", lambda: "cuda")
    monkeypatch.setattr(defaults_module, "in_lockstep", trained)
    words = ("environments=hopper", "algorithms=plain-bc", "ways=auto")
    few = pieces_of(Order("control/defaults", "full", tmp_path, silent, (*words, "seeds=1")))
    few.every["hopper-plain-bc-auto"].make()
    every = pieces_of(Order("control/defaults", "full", tmp_path, silent, words)).every
    assert list(every) == ["hopper-plain-bc-auto"]
    every["hopper-plain-bc-auto"].make()
    every["hopper-plain-bc-auto"].make()  # all found
    steps = job_of("control", {"settings": ["algorithm=plain-bc"], "prune": "auto", "sparsity": 0.95}).training.steps
    assert asked == [((1,), steps, "hopper-plain-bc-auto-1-1", "cuda"),
                     ((0, 2, 3, 4), steps, "hopper-plain-bc-auto-0-4", "cuda")]  # fmt: skip
    rows = [json.loads(path.read_text()) for path in sorted((tmp_path / "defaults-full").glob("*.json"))]
    assert [(row["seed"], row["score"], row["processor_seconds"]) for row in rows] == [
        (seed, 90.0 + seed, None) for seed in range(5)
    ]


def test_lock_step_trains_what_each_seed_alone_would(tmp_path: Path) -> None:
    words = {
        "settings": ["algorithm=plain-bc", "transitions=300", "episodes=2", "horizon=10", "hidden=32,24"],
        "steps": 30, "prune": "auto", "sparsity": 0.8, "precision": "float64", "engine": "plain",
    }  # fmt: skip
    alone = [job_of("control", {**words, "seeds": seed}).run(tmp_path / str(seed))[0] for seed in (0, 1)]
    job = dataclasses.replace(job_of("control", words), seeds=(0, 1))
    together = in_lockstep(job, tmp_path / "both", device="cpu", compile=False, log=silent)
    for one, other in zip(alone, together):
        assert other == pytest.approx(one, rel=1e-5)
