"""A training that diverges says so, keeps what was good, and its weights are nobody's to use."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import fewer
from fewer.cli import main
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.loop import Loop, diverged_
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.run.job import Job
from fewer.run.load import load
from tests.toys import Fit, Patches


class Bursts(Fit):
    """The losses of seed 1 are infinite from the sixth step on."""

    def loss(self, nets: Any, batch: Any, noise: Any) -> Tensor:
        late = (noise.step >= 5) & (noise.seed == SICK)
        return super().loss(nets, batch, noise) * torch.where(late, torch.inf, 1.0)


SICK, WELL = 1, 0
OFTEN = Loop(log_every=1, save_seconds=0.0)


def job(*seeds: int, **training: Any) -> Job:
    return Job(f"{__name__}:Bursts", training=Training(**{"steps": 10, "batch": 8, **training}), seeds=seeds)


def test_a_training_that_diverges_is_refused_and_its_last_good_state_stays(tmp_path: Path) -> None:
    for _ in range(2):  # the same command again comes to the same end
        with pytest.raises(UserError, match="weights that are not finite after 6 steps"):
            job(SICK).run(tmp_path / "run", loop=OFTEN)
        state = Folder(tmp_path / "run").read_tensors("state.safetensors")
        assert int(state["step"]) == 5 and all(
            bool(t.isfinite().all()) for t in state.values() if t.is_floating_point()
        )
        assert not (tmp_path / "run" / "metrics.json").exists()


def test_a_training_that_diverges_after_its_last_line_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not finite"):
        job(SICK, steps=20, validate_every=6, patience=1).run(tmp_path / "run", loop=Loop(log_every=50))


def test_a_replica_that_diverges_stays_alone_and_the_others_are_finished(tmp_path: Path) -> None:
    together = Job(f"{__name__}:Bursts", training=Training(steps=10, batch=8), seeds=(WELL, SICK))
    with pytest.raises(UserError, match=rf"not finite after 10 steps \(seed {SICK}; the others are finished in"):
        together.run(tmp_path / "both")
    assert not (tmp_path / "both" / "metrics.json").exists() and not (tmp_path / "both" / f"seed-{SICK}").exists()
    metrics = load(tmp_path / "both" / f"seed-{WELL}").metrics
    job(WELL).run(tmp_path / "alone")
    assert metrics == pytest.approx(load(tmp_path / "alone").metrics, rel=1e-5)


def test_validation_chooses_no_weights_that_are_not_finite(tmp_path: Path) -> None:
    metrics = job(SICK, WELL, validate_every=2).run(tmp_path / "run", loop=Loop(log_every=50))
    assert metrics[0]["chosen_step"] <= 4 and all(math.isfinite(value) for value in metrics[0].values())
    load(tmp_path / "run" / f"seed-{SICK}")


def test_running_statistics_count_as_weights() -> None:
    from fewer.core.engines.plain import Plain

    engine: Engine = Plain(Patches(), Training(steps=1, batch=8), 0)
    assert diverged_(engine) == []
    engine.state.networks["net"].buffers["norm.running_var"][0, 0] = torch.inf
    assert diverged_(engine) == [0] and bool(engine.state.finite().all())


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("verb", ["evaluate", "pack", "vote", "report", "train"])
def test_every_command_refuses_a_run_whose_weights_are_not_finite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, value: float
) -> None:
    out = tmp_path / "run"
    Job("tests.toys:Fit", training=Training(steps=1, batch=8)).run(out)
    weights = load_file(out / "weights.safetensors")
    weights["net/0.weight"][0, 0] = value
    save_file(weights, out / "weights.safetensors")
    more = {
        "pack": ["-o", str(tmp_path / "p")], "vote": [str(out)], "report": ["-o", str(tmp_path / "r.html")],
        "train": ["tests.toys:Fit", "--from", str(out), "--steps", "1", "--out", str(tmp_path / "next")],
    }.get(verb, [])  # fmt: skip
    capsys.readouterr()
    assert main([verb, *([] if verb == "train" else [str(out)]), *more]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and "net.0.weight is not finite" in said.err and said.out == ""
    assert not (tmp_path / "p").exists() and not (tmp_path / "r.html").exists()


def test_a_run_in_memory_whose_weights_are_not_finite_is_not_packed(tmp_path: Path) -> None:
    Job("tests.toys:Fit", training=Training(steps=1, batch=8)).run(tmp_path / "run")
    run = fewer.load(tmp_path / "run")
    with torch.no_grad():
        run.modules["net"].get_parameter("0.weight").fill_(torch.nan)
    with pytest.raises(UserError, match="not finite"):
        fewer.pack(run, tmp_path / "p")
    assert not (tmp_path / "p").exists()
