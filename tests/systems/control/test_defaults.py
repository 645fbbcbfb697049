"""The study of defaults: every training a piece, and a table of what is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fewer.core.errors import UserError
from fewer.studies.order import Order
from fewer.studies.pieces import pieces_of, silent
from fewer.studies.study import reproduce
from fewer.systems.control.studies.defaults import WAYS, defaults


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
