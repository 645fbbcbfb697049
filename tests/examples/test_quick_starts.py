"""The quick starts do what they say, word for word but for shorter trainings."""

from __future__ import annotations

import ast
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fewer
from fewer.run import api
from fewer.run.load import Trained, load

EXAMPLES = Path(__file__).parents[2] / "examples"
TINY: dict[str, dict[str, Any]] = {
    "vision": {"network": "cnn0", "classes": "3,7"},
    "cellfree": {"train_phones": 200, "validation_phones": 50, "test_phones": 100, "pixel_m": 20.0},
    "control": {"transitions": 300, "episodes": 1, "horizon": 20, "hidden": (32, 32)},
    "nowcast": {"size": 24, "width": 4, "train_windows": 8, "validation_windows": 2, "test_windows": 2},
}


@pytest.fixture(autouse=True)
def short_trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path / "cache"))

    def train(task: str, out: str, *, settings: dict[str, Any] | None = None, **options: Any) -> Trained:
        tiny = {**(settings or {}), **TINY.get(task, {})}
        return api.train(task, out, settings=tiny, **{**options, "steps": 10})

    monkeypatch.setattr(fewer, "train", train, raising=False)


@pytest.mark.parametrize("task", sorted(TINY))
def test_a_quick_start_trains_packs_and_predicts(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = runpy.run_path(str(EXAMPLES / f"{task}.py"))
    run = found["run"]
    assert run.job.task == task and load(run.path).metrics == run.metrics
    assert run.job.prune is not None and len(list(Path().glob("*.pack"))) == 1
    assert next(iter(run.metrics)) in capsys.readouterr().out


@pytest.mark.parametrize("task", sorted(TINY))
def test_a_quick_start_has_about_ten_lines(task: str) -> None:
    tree = ast.parse((EXAMPLES / f"{task}.py").read_text())
    assert len(tree.body) - 1 <= 10  # statements, without the docstring


def test_your_own_model_is_pruned_hardened_audited_and_packed_in_30_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (EXAMPLES / "own_model.py").read_text()
    assert len(text.splitlines()) <= 30
    monkeypatch.syspath_prepend(str(EXAMPLES))
    run = runpy.run_path(str(EXAMPLES / "own_model.py"), run_name="__main__")["run"]
    assert run.job.harden == "pgd:0.3" and Path("mine.pack").stat().st_size < 4 * 24_000
    assert "APGD" in capsys.readouterr().out


def test_the_notebook_runs_from_top_to_bottom_and_shows_its_results() -> None:
    cells = json.loads((EXAMPLES / "quickstart.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    shown = 0
    for cell in cells:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop()
            exec(compile(tree, "cell", "exec"), names)
            assert isinstance(last, ast.Expr)  # what Jupyter shows
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            shown += hasattr(value, "_repr_html_")
            if isinstance(value, np.ndarray):
                assert np.isfinite(value).all()
    assert shown == 3
    assert not any(cell.get("outputs") for cell in cells)
