"""A sparsity is never one of a part alone unless that was asked for, and what is told is of all weights."""

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
from fewer.core.errors import UserError
from fewer.core.registry import make, systems
from fewer.pruning.pruning import Pruning
from fewer.pruning.reach import beyond_reach, count, refuse_partial
from fewer.report.groups import grouped
from fewer.run.job import Job
from fewer.run.load import load
from fewer.sweep.grid import grid_of
from tests.toys import Control, Fit

MATRICES = ("net.rnn.weight_hh_l0", "net.rnn.weight_ih_l0")


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


class Rnn(Fit):
    def networks(self) -> dict[str, nn.Module]:
        return {"net": Reader(nn.RNN(1, 8, batch_first=True))}


class Lstm(Fit):
    def networks(self) -> dict[str, nn.Module]:
        return {"net": Reader(nn.LSTM(1, 8, batch_first=True))}


WAYS = [("snip", "start"), ("magnitude", "gradual"), ("random", "rigl"), ("magnitude", "rounds")]


@pytest.mark.parametrize("kind", [Gru, Rnn, Lstm])
@pytest.mark.parametrize(("method", "when"), WAYS)
def test_training_is_refused_where_most_weights_cannot_be_pruned(
    kind: type, method: str, when: str, tmp_path: Path
) -> None:
    pruning = Pruning(method, 0.5, when=when, samples=10)
    job = Job(f"{__name__}:{kind.__name__}", training=Training(4, 10), prune=pruning)
    with pytest.raises(UserError, match=r"cannot touch, net\.rnn\.weight_hh_l0, net\.rnn\.weight_ih_l0 .*partial=true"):
        job.run(tmp_path / "run")
    assert not (tmp_path / "run").exists()
    if when != "rounds":  # which judge their replicas under vmap, where torch has no recurrent layers
        dataclasses.replace(job, prune=dataclasses.replace(pruning, partial=True)).run(tmp_path / "run")
        assert load(tmp_path / "run").mask


def test_what_remains_is_told_of_all_weights_with_the_prunable_ones_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    words = ["train", f"{__name__}:Gru", "--prune", "magnitude,partial=true,samples=10", "--sparsity", "0.5"]
    assert main([*words, "--steps", "4", "--batch", "10", "--out", out, "--json"]) == 0
    trained = json.loads(capsys.readouterr().out)
    assert main(["evaluate", out, "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    weights = 3 * 8 * (1 + 8) + 6 * 8 + 8 + 1
    expected = {"weights": weights, "kept_weights": weights - 4, "prunable_weights": 8, "kept_prunable_weights": 4}
    assert expected.items() <= trained.items() and expected.items() <= evaluated.items()
    group = grouped([load(out)])[0]
    assert (group.weights, group.kept) == (weights, weights - 4) and group.sparsity < 0.02
    assert f"{weights - 4} of {weights}" in load(out)._repr_html_()


def test_the_command_line_refuses_in_one_line_and_a_grid_can_insist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", f"{__name__}:Gru", "--prune", "snip", "--sparsity", "0.9", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and all(name in said for name in MATRICES) and "--prune snip,partial=true" in said
    (point,) = grid_of({"base": {"task": f"{__name__}:Gru", "prune": "snip,partial=true"}}).points
    assert point.job.prune is not None and point.job.prune.partial


def test_checking_says_which_part_pruning_reaches(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", f"{__name__}:Gru"])
    line = next(line for line in capsys.readouterr().out.splitlines() if "criterion" in line)
    assert "8 of 273 weights (2.93 %)" in line and all(name in line for name in MATRICES) and "refuses" in line


@pytest.mark.parametrize("name", sorted(systems()))
def test_every_task_of_ours_can_be_pruned_by_its_defaults(name: str) -> None:
    task = make(name, ("transitions=1000",) if name == "control" else ())
    refuse_partial(task, fresh_modules(task, 0), Pruning())


@pytest.mark.parametrize("model", ["baseline", "improved", "vivit", "swin", "focus", "drift"])
def test_every_network_of_nowcast_can_be_pruned(model: str) -> None:
    if model == "swin":
        pytest.importorskip("monai")
    words = ("size=24", "train_windows=4", "validation_windows=2", "test_windows=2", f"model={model}")
    task = make("nowcast", words)
    refuse_partial(task, fresh_modules(task, 0), Pruning())


def test_target_copies_are_not_counted_and_followers_are() -> None:
    task = Control()
    modules = fresh_modules(task, 0)
    own = sum(p.numel() for name in ("actor", "critic", "critic2") for p in modules[name].parameters())
    assert count(task, modules, {}).weights == own
    assert beyond_reach(task, modules) == {}
    half = {"critic2": {"l1.weight": torch.zeros(16, 7, dtype=torch.bool)}}
    assert count(task, modules, half).kept == own - 16 * 7


def test_runs_and_points_from_before_partial_are_found_again() -> None:
    job = Job("vision", prune=Pruning("snip", 0.5))
    described: Any = job.config()["prune"]
    assert "partial" not in described and Pruning(**described) == job.prune
    insisting = dataclasses.replace(job, prune=Pruning("snip", 0.5, partial=True))
    assert insisting.config()["prune"]["partial"] is True
