"""The example that adds a task passes the contract suite, trains pruned, and stays short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from fewer.cli import main
from fewer.core.mask import density
from fewer.run.load import load

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_task.py"


@pytest.fixture(autouse=True)
def beside_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE.parent)
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    torch.set_num_threads(1)


def test_the_example_is_under_100_lines() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 100


def test_the_example_passes_the_contract_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "own_task:Pendulum"]) == 0
    assert "FAIL" not in capsys.readouterr().out


def test_the_example_trains_pruned_and_learns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "own_task:Pendulum", "--set", "width=32", "--steps", "300", "--prune", "snip", "--sparsity"]
    assert main([*words, "0.8", "--out", str(tmp_path / "run"), "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["fit"] > 0.9
    assert density(load(tmp_path / "run").mask) == pytest.approx(0.2, abs=1e-3)
