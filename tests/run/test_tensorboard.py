"""What TensorBoard would show of a run, read back with its own reader."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from fewer.cli import main
from fewer.core.engines.base import Training
from fewer.core.engines.loop import Loop
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.run.job import Job
from fewer.run.load import load
from fewer.run.tensorboard import Recorder, watching

TINY = ["--set", "network=cnn0", "--batch", "8", "--steps", "100", "--json"]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def scalars(path: Path) -> dict[str, dict[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(path)).Reload()
    curves = {}
    for name in found.Tags()["scalars"]:
        points = [(event.step, event.value) for event in found.Scalars(name)]
        assert len({step for step, _ in points}) == len(points), f"{name} says a step twice"
        curves[name] = dict(points)
    return curves


def test_a_run_shows_its_losses_rates_density_validation_and_test_figures(tmp_path: Path) -> None:
    words = ["train", "vision", *TINY, "--prune", "magnitude,when=gradual", "--sparsity", "0.8"]
    words += ["--optimizer", "adam,lr=0.002,decay_from=0.5", "--log", "tensorboard", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    found, lines = scalars(tmp_path / "run"), Folder(tmp_path / "run").lines()
    assert found["loss/net"] == pytest.approx({line["step"]: line["loss/net"] for line in lines})
    assert found["density"][50] > found["density"][100] == pytest.approx(1184 / 5656, abs=1e-6)
    assert found["density/prunable"][100] == pytest.approx(0.2, abs=1e-3)
    rates = found["learning_rate/net"]
    assert 1e-3 < rates[50] <= 0.002 and rates[100] < 1e-5
    assert found["test/accuracy"] == pytest.approx({100: load(tmp_path / "run").metrics["accuracy"]}, rel=1e-6)


def test_validation_figures_are_shown_where_validation_is_looked_at(tmp_path: Path) -> None:
    words = ["train", "vision", *TINY, "--validate-every", "40", "--log", "tensorboard", "--out", str(tmp_path)]
    assert main(words) == 0
    found = scalars(tmp_path)
    assert list(found["validation/accuracy"]) == [40, 80, 100]
    assert list(found["loss/net"]) == [50, 100]


def test_every_seed_of_a_cohort_has_its_own_curves(tmp_path: Path) -> None:
    words = ["train", "vision", *TINY, "--seeds", "0-1", "--log", "tensorboard", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    line = Folder(tmp_path / "run").lines()[-1]
    for seed in (0, 1):
        found = scalars(tmp_path / "run" / f"seed-{seed}")
        assert found["loss/net"][100] == pytest.approx(line["loss/net"][seed])
        assert "test/accuracy" in found


class Killed(Exception):
    pass


def test_a_killed_run_goes_on_in_the_same_curves(tmp_path: Path) -> None:
    job = Job("vision", ("network=cnn0",), Training(steps=60, batch=8))
    with Recorder() as recorder:
        job.run(tmp_path / "whole", loop=Loop(log_every=10, watch=recorder))

    class Late(Recorder):
        """The state is saved at step 20 only, so what was shown of 30 and 40 is trained again."""

        def __call__(self, engine: Any, folder: Folder | None, line: Any) -> None:
            super().__call__(engine, folder, line)
            assert folder is not None
            if line["step"] == 20:
                folder.write_tensors("state.safetensors", dict(engine.state.named()))
            if line["step"] == 40:
                raise Killed

    with pytest.raises(Killed), Late() as recorder:
        job.run(tmp_path / "run", loop=Loop(log_every=10, save_seconds=1e9, watch=recorder))
    with Recorder() as recorder:
        job.run(tmp_path / "run", loop=Loop(log_every=10, watch=recorder))
    assert scalars(tmp_path / "run") == scalars(tmp_path / "whole")
    assert list(scalars(tmp_path / "run")["loss/net"]) == [10, 20, 30, 40, 50, 60]


def test_a_tool_that_is_unknown_or_absent_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "vision", *TINY, "--log", "wandb", "--out", str(tmp_path / "run")]) == 2
    assert "expected tensorboard" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserError, match=r"pip install 'fewer\[log\]'"), watching("tensorboard"):
        pass


def test_rounds_of_trainings_are_refused_a_single_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "vision", *TINY, "--prune", "magnitude,when=rounds", "--log", "tensorboard"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    assert "when=rounds" in capsys.readouterr().err
