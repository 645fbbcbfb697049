"""What pruning reaches is every matrix, or what patterns name; what is told is of all weights."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.cli import main
from fewer.core.engines.base import Training
from fewer.core.engines.state import fresh_modules
from fewer.core.registry import make, systems
from fewer.pruning.pruning import Pruning
from fewer.pruning.reach import count, refuse_unreachable
from fewer.report.groups import grouped
from fewer.run.job import Job
from fewer.run.load import load
from tests.toys import Control, Fit


class Reader(nn.Module):
    """Four numbers in turn through a recurrent layer, and a head."""

    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn, self.head = rnn, nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.head(self.rnn(x[:, :, None])[0][:, -1])
        return answer


class Gru(Fit):
    def networks(self) -> dict[str, nn.Module]:
        return {"net": Reader(nn.GRU(1, 8, batch_first=True))}


GRU = f"{__name__}:{Gru.__name__}"


def test_what_remains_is_told_of_all_weights_with_the_prunable_ones_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    words = ["train", GRU, "--prune", "magnitude,samples=10", "--sparsity", "0.5", "--skip", "head"]
    assert main([*words, "--steps", "4", "--batch", "10", "--out", out, "--json"]) == 0
    trained = json.loads(capsys.readouterr().out)
    assert main(["evaluate", out, "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    matrices = 3 * 8 * (1 + 8)
    weights = matrices + 6 * 8 + 8 + 1
    expected = {
        "weights": weights, "kept_weights": weights - matrices // 2,
        "prunable_weights": matrices, "kept_prunable_weights": matrices // 2,
    }  # fmt: skip
    assert expected.items() <= trained.items() and expected.items() <= evaluated.items()
    group = grouped([load(out)])[0]
    assert (group.weights, group.kept) == (weights, weights - matrices // 2)
    assert f"{weights - matrices // 2} of {weights}" in load(out)._repr_html_()
    counted = sum(int((p != 0).sum()) for p in load(out).modules["net"].rnn.parameters() if p.ndim == 2)
    assert counted == matrices // 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "nothing.*"], "no parameter called nothing.*"),
        (["--skip", "rnn", "--skip", "head"], "networks without a weight that pruning may touch"),
        (["--only", "rnn.bias_*"], "networks without a weight that pruning may touch"),
    ],
)
def test_patterns_that_leave_nothing_are_one_line(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["train", GRU, "--prune", "snip", "--sparsity", "0.9", "--out", str(tmp_path / "run")]
    assert main([*given, *words]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and said in told and not (tmp_path / "run").exists()


@pytest.mark.parametrize("when", ["start", "gradual", "set", "rigl", "rounds"])
def test_only_what_is_named_loses_weights(when: str, tmp_path: Path) -> None:
    pruning = Pruning("magnitude", 0.5, when=when, samples=10, only="rnn.weight_hh_*")
    Job(GRU, training=Training(8, 10), prune=pruning).run(tmp_path / "run")
    run = load(tmp_path / "run")
    assert set(run.mask["net"]) == {"rnn.weight_hh_l0"}
    assert int((run.modules["net"].rnn.weight_hh_l0 != 0).sum()) == 96  # type: ignore[union-attr, operator, arg-type]
    assert bool((run.modules["net"].rnn.weight_ih_l0 != 0).all())  # type: ignore[union-attr, arg-type]


def test_checking_says_which_part_pruning_reaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", GRU]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "criterion" in line)
    assert "224 of 273 weights (82.1 %)" in line


@pytest.mark.parametrize("name", sorted(systems()))
def test_every_task_of_ours_can_be_pruned_by_its_defaults(name: str) -> None:
    task = make(name, ("transitions=1000",) if name == "control" else ())
    refuse_unreachable(task, fresh_modules(task, 0))


@pytest.mark.parametrize("model", ["baseline", "improved", "vivit", "swin", "focus", "drift"])
def test_every_network_of_nowcast_can_be_pruned(model: str) -> None:
    if model == "swin":
        pytest.importorskip("monai")
    words = ("size=24", "train_windows=4", "validation_windows=2", "test_windows=2", f"model={model}")
    task = make("nowcast", words)
    refuse_unreachable(task, fresh_modules(task, 0))


def test_target_copies_are_not_counted_and_followers_are() -> None:
    task = Control()
    modules = fresh_modules(task, 0)
    own = sum(p.numel() for name in ("actor", "critic", "critic2") for p in modules[name].parameters())
    assert count(task, modules, {}).weights == own
    half = {"critic2": {"l1.weight": torch.zeros(16, 7, dtype=torch.bool)}}
    assert count(task, modules, half).kept == own - 16 * 7


def test_runs_and_points_from_before_a_setting_are_found_again() -> None:
    job = Job("vision", prune=Pruning("snip", 0.5))
    described: Any = job.config()["prune"]
    assert not {"only", "skip", "rows"} & set(described) and Pruning(**described) == job.prune
    insisting = dataclasses.replace(job, prune=Pruning("snip", 0.5, skip="head"))
    assert insisting.config()["prune"]["skip"] == "head"
