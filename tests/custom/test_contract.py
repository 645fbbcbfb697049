"""Every task of ours passes the contract suite; each broken one is caught by the check that is meant for it."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.cli import main
from fewer.core.data import TensorData
from fewer.core.engines.base import Training
from fewer.core.errors import Notice, UserError
from fewer.core.registry import make, systems
from fewer.core.task import Copy, Nets, Noise, Objective, Task
from fewer.custom.contract import CHECKS, check
from fewer.run.job import Job
from tests.toys import BiasFree, Blobs, Control, Convolved, Fit, Graph, Patches, Tied, Untrained

# small enough for a test, large enough to mean it
SMALL: dict[str, tuple[str, ...]] = {
    "control": ("transitions=1000", "hidden=32,24", "autoencoder_hidden=40,40", "episodes=2", "horizon=10"),
    "nowcast": ("size=24", "width=4", "train_windows=16", "validation_windows=4", "test_windows=6"),
    "vision": ("network=cnn0",),
}


KINDS: list[type[Task[Any]]] = [Fit, Blobs, Patches, Control, Graph, Untrained, BiasFree, Convolved, Tied]


def faults(task: Task[Any]) -> dict[str, str]:
    return {outcome.name: outcome.fault for outcome in check(task) if outcome.fault}


@pytest.mark.parametrize("name", sorted(systems()))
def test_every_task_of_ours_honours_the_contract(name: str) -> None:
    assert faults(make(name, SMALL.get(name, ()))) == {}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_toy_tasks_of_every_kind_honour_the_contract(kind: type[Task[Any]]) -> None:
    assert faults(kind()) == {}


def test_checking_a_task_twice_gives_the_same_verdict() -> None:
    task = Graph()
    assert faults(task) == faults(task) == {}


class SharedParameter(Control):
    def networks(self) -> dict[str, nn.Module]:
        networks = super().networks()
        networks["critic2"].l1.weight = networks["critic"].l1.weight  # type: ignore[union-attr]
        return networks


class ReadsAValue(Fit):
    def loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        error = super().loss(nets, batch, noise)
        return error / (1 + error.detach().item())


class BranchesOnAValue(Fit):
    def loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        error = super().loss(nets, batch, noise)
        return error * 2 if error > 0 else error


class IndexesByFlags(Fit):
    def loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return super().attack_loss(nets, batch, noise)[batch.x[:, 0] > 0].mean()


class UnseededLoss(Fit):
    def loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return super().loss(nets, batch, noise) * (1 + torch.rand(()))


class UnseededNetworks(Fit):
    def networks(self) -> dict[str, nn.Module]:
        torch.seed()
        return super().networks()


class FixedNetworks(Fit):
    def networks(self) -> dict[str, nn.Module]:
        torch.manual_seed(0)
        return super().networks()


class InfiniteLoss(Fit):
    def loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return super().loss(nets, batch, noise) / 0


class VectorLoss(Fit):
    def loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return self.attack_loss(nets, batch, noise)


class NoGradient(Control):
    def actor_loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return super().critic_loss(nets, batch, noise)


class UnknownNetwork(Fit):
    def objectives(self) -> tuple[Objective[Any], ...]:
        return (Objective(("net", "critic"), self.loss),)


class CopyOfNothing(Fit):
    def copies(self) -> dict[str, Copy]:
        return {"target": Copy("nett")}


class MaskOfNothing(Fit):
    def same_mask(self) -> dict[str, str]:
        return {"net": "other"}


class NaNInTheData(Fit):
    def __init__(self) -> None:
        super().__init__()
        self.samples.samples.x[1, 2] = torch.nan


class OneAnswerForAll(Fit):
    def predict(self, nets: Nets, inputs: Any, noise: Noise) -> Tensor:
        answer: Tensor = nets.net(inputs)
        return answer.mean(0)


class NoFigure(Fit):
    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        yield self.samples.samples
        return {}


class InfiniteFigure(Fit):
    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        yield self.samples.samples
        return {"score": float("inf")}


class NoQuestion(Fit):
    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        yield from ()
        return {"score": 1.0}


class RaggedData(Fit):
    class Ragged(TensorData[Any]):
        def take(self, index: Tensor) -> Any:
            batch = super().take(index)
            return batch._replace(y=batch.y[:1])

    def data(self, split: str) -> Any:
        return self.Ragged(self.samples.samples)


class SurfaceOutOfBounds(Fit):
    def __init__(self) -> None:
        super().__init__()
        self.bounds = torch.tensor(-0.1), torch.tensor(0.1)


class ReplaceForgets(Fit):
    def replace(self, batch: Any, surface: Tensor) -> Any:
        return batch


class HarmOfAll(Fit):
    def attack_loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return super().attack_loss(nets, batch, noise).mean()

    def loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return self.attack_loss(nets, batch, noise)


class OneHotLabels(Blobs):
    def labels(self, batch: Any) -> Tensor:
        return nn.functional.one_hot(batch.y, 3)


BROKEN: list[tuple[type[Task[Any]], str, str]] = [
    (SharedParameter, "networks share no parameters", "critic2.l1.weight, which is also critic.l1.weight"),
    (ReadsAValue, "a cohort trains each replica as if alone", "vmap"),
    (BranchesOnAValue, "a cohort trains each replica as if alone", "vmap"),
    (IndexesByFlags, "a cohort trains each replica as if alone", "vmap"),
    (UnseededLoss, "losses are pure", "noise alone"),
    (UnseededNetworks, "networks are a function of the seed", "same seed"),
    (InfiniteLoss, "losses are finite scalars that reach their networks", "loss of inf"),
    (VectorLoss, "losses are finite scalars that reach their networks", "shape"),
    (NoGradient, "losses are finite scalars that reach their networks", "no gradient"),
    (UnknownNetwork, "names agree", "critic"),
    (CopyOfNothing, "names agree", "nett"),
    (MaskOfNothing, "names agree", "other"),
    (NaNInTheData, "batches hold tensors with samples on axis 0", "NaN"),
    (RaggedData, "batches hold tensors with samples on axis 0", "leaf"),
    (OneAnswerForAll, "predictions have samples on axis 0 and need no labels", "shape"),
    (NoFigure, "evaluation returns finite metrics", "no metric"),
    (InfiniteFigure, "evaluation returns finite metrics", "inf"),
    (NoQuestion, "evaluation returns finite metrics", "no batch"),
    (SurfaceOutOfBounds, "an attack can replace the perturbable input", "bounds"),
    (ReplaceForgets, "an attack can replace the perturbable input", "replace"),
    (HarmOfAll, "an attack can replace the perturbable input", "one number a sample"),
    (OneHotLabels, "a classifier gives logits and labels", "labels"),
]


@pytest.mark.parametrize(("kind", "name", "word"), BROKEN, ids=[kind.__name__ for kind, _, _ in BROKEN])
def test_a_broken_task_is_caught_by_the_check_that_is_meant_for_it(kind: Any, name: str, word: str) -> None:
    check_function = next(function for function in CHECKS if function.__name__.replace("_", " ") == name)
    with pytest.raises(ValueError, match=r"(?i)\S") as caught:
        check_function(kind())
    assert word in str(caught.value), str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_random_are_noted_and_nothing_fails() -> None:
    outcomes = check(FixedNetworks())
    assert [outcome for outcome in outcomes if outcome.fault] == []
    assert "pretrained" in str(outcomes[0].note)


@pytest.mark.parametrize(("kind", "cost"), [(ReadsAValue, "one by one"), (HarmOfAll, "neither attacked"), (Fit, "")])
def test_what_trains_without_a_method_says_which_and_what_to_do(
    kind: Any, cost: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", f"{__name__}:{kind.__name__}"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cost")]
    assert bool(lines) == bool(cost) and all(cost in line for line in lines)


def test_what_blocks_training_fails_and_the_error_is_json_where_so_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{__name__}:{InfiniteLoss.__name__}", "--json"]) == 2
    said = capsys.readouterr()
    assert "block training" in json.loads(said.err)["error"] and json.loads(said.err)["expected"] == "none"
    assert any(row["fault"] and row["cost"] is None for row in json.loads(said.out))


def test_seeds_that_cannot_train_in_lock_step_train_one_by_one(tmp_path: Path) -> None:
    name, training = f"{__name__}:{ReadsAValue.__name__}", Training(3, 8)
    with pytest.warns(Notice, match="one by one"):
        assert len(Job(name, training=training, seeds=(0, 1)).run(tmp_path / "both")) == 2
    with pytest.raises(UserError, match="leave --engine out"):
        Job(name, training=training, seeds=(0, 1), engine="cohort").run(tmp_path / "insisting")
