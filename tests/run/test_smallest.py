"""Budget in, network out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fewer.cli import main
from fewer.core.errors import UserError
from fewer.run.smallest import FRONTIER, SHARES, Budget, smallest

TOY = "tests.toys:Blobs"
WORDS: dict[str, Any] = {"steps": 30, "lr": 0.02}


def test_the_fewest_weights_within_a_loss_are_chosen_on_validation(tmp_path: Path) -> None:
    found = smallest(TOY, WORDS, Budget(max_loss=0.9), tmp_path)
    kept = [row["kept"] for row in found.curve if "kept" in row]
    assert found.row["loss"] <= 0.9 and kept == sorted(kept, reverse=True)
    smaller = [row for row in found.curve if row["share"] < found.row["share"]]
    assert all("refused" in row or row["loss"] > 0.9 for row in smaller)
    written = json.loads((tmp_path / FRONTIER).read_text())
    assert written["chosen"]["run"] == found.run.path.name and len(written["curve"]) == len(found.curve)


def test_a_search_that_was_killed_trains_nothing_twice(tmp_path: Path) -> None:
    smallest(TOY, WORDS, Budget(max_loss=0.9), tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")}
    (tmp_path / FRONTIER).unlink()
    smallest(TOY, WORDS, Budget(max_loss=0.9), tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")}
    with pytest.raises(UserError, match="lr"):
        smallest(TOY, {**WORDS, "lr": 0.5}, Budget(max_loss=0.9), tmp_path)


def test_within_bytes_the_largest_that_fits_is_chosen(tmp_path: Path) -> None:
    every = smallest(TOY, WORDS, Budget(max_bytes=10**9), tmp_path)
    assert every.row["share"] == SHARES[0]
    fits = smallest(TOY, WORDS, Budget(max_bytes=every.row["bytes"] - 1), tmp_path)
    assert fits.row["bytes"] < every.row["bytes"]


def test_a_budget_that_nothing_keeps_to_and_two_budgets_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["smallest", TOY, "--steps", "3", "--max-bytes", "1", "--out", str(tmp_path / "a")]) == 2
    assert "allow more" in capsys.readouterr().err
    assert main(["smallest", TOY, "--out", str(tmp_path / "b")]) == 2
    assert "one, above 0" in capsys.readouterr().err
