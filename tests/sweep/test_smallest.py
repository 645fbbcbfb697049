"""Budget in, network out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fewer.cli import main
from fewer.core.errors import UserError
from fewer.sweep.smallest import FRONTIER, SHARES, Budget, smallest

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


def test_in_lock_step_every_share_is_trained_before_the_search_and_only_once(tmp_path: Path) -> None:
    found = smallest(TOY, {**WORDS, "engine": "cohort"}, Budget(max_loss=0.9), tmp_path)
    trained = {path.parent.name: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")}
    config = json.loads((tmp_path / "dense" / "config.json").read_text())
    assert config["cohort"] == ["dense", "kept-50"]  # of ten; too few weights were refused, and halves tried again
    assert {"dense", "kept-50"} < set(trained)
    again = smallest(TOY, {**WORDS, "engine": "cohort"}, Budget(max_loss=0.9), tmp_path)
    assert again.row["share"] == found.row["share"]
    assert trained == {path.parent.name: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")}


def test_the_figure_on_the_test_split_is_told_beside_the_one_that_chose(tmp_path: Path) -> None:
    found = smallest(TOY, WORDS, Budget(max_loss=0.9), tmp_path)
    assert found.row["test"] == found.run.metrics[found.row["metric"]]


def test_a_report_of_the_folder_shows_every_network_and_where_the_chosen_one_stands(tmp_path: Path) -> None:
    found = smallest(TOY, WORDS, Budget(max_loss=0.9), tmp_path / "search")
    place = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "search"), "-o", str(place), "--attack", "none"]) == 0
    text = place.read_text()
    assert f"{found.row['kept']:,} of {found.row['weights']:,} prunable weights" in text
    assert text.count("<td>chosen</td>") == 1
    assert all(f"<td>{100 * row['share']:g} %</td>" in text for row in found.curve)
    (tmp_path / "search" / FRONTIER).write_text("{}")
    assert main(["report", str(tmp_path / "search"), "-o", str(place)]) == 2
