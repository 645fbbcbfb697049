"""A torch module and data loaders as a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from fewer.core.abilities import Attackable, Classifier, Voting
from fewer.core.engines.base import Training
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.loop import fit
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.custom.contract import check
from fewer.custom.supervised import Classification, Regression

torch.set_num_threads(1)


def samples(count: int = 200) -> tuple[Tensor, Tensor]:
    x = torch.rand(count, 3, generator=torch.Generator().manual_seed(0))
    return x, x.sum(1, keepdim=True)


class Sum(Regression):
    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        pairs = TensorDataset(*samples())
        return {"train": DataLoader(pairs, 32, shuffle=True), "test": DataLoader(pairs, 32)}


class Larger(Classification):
    low = -1.0

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        x, y = samples()
        return {split: [(x, (y[:, 0] > 1.5).long())] for split in ("train", "test", "validation")}


@pytest.mark.parametrize("task", [Sum(), Larger()], ids=["regression", "classification"])
def test_both_kinds_honour_the_contract(task: Any) -> None:
    assert [outcome for outcome in check(task) if outcome.fault] == []


def test_a_regression_learns_and_says_how_much_it_explains() -> None:
    task = Sum()
    engine = Plain(task, Training(steps=300, batch=32, optimizer=Optimizer(lr=1e-2)), 0)
    fit(engine)
    metrics = evaluate(task, predictor(task, engine.state.modules_of(0)))
    y = samples()[1]
    assert metrics["r2"] > 0.9
    assert metrics["r2"] == pytest.approx(1 - metrics["mean_squared_error"] / float(y.var(correction=0)), abs=1e-5)


def test_only_a_classification_can_be_voted_on_and_audited() -> None:
    assert isinstance(Larger(), Classifier | Voting) and isinstance(Larger(), Attackable)
    assert not isinstance(Sum(), Classifier) and isinstance(Sum(), Attackable)


def test_bounds_are_those_given_or_those_of_the_data() -> None:
    low, high = Larger().bounds
    assert float(low) == -1.0 and float(high) == float(samples()[0].max())


def test_a_loader_that_shuffles_gives_the_same_samples_every_time() -> None:
    assert torch.equal(Sum().data("train").samples.x, Sum().data("train").samples.x)


def test_without_a_loader_for_validation_every_tenth_sample_is_held_out() -> None:
    task = Sum()
    train, held = task.data("train").samples.x, task.data("validation").samples.x
    assert len(held) == 20 and len(train) == 180
    assert not (train[:, None] == held[None]).all(2).any()


def test_loaders_of_another_kind_are_refused() -> None:
    class Without(Sum):
        def loaders(self) -> Mapping[str, Iterable[Any]]:
            return {"train": [samples()]}

    class Names(Sum):
        def loaders(self) -> Mapping[str, Iterable[Any]]:
            return {"train": [samples()[0]], "test": [samples()]}

    class Empty(Sum):
        def loaders(self) -> Mapping[str, Iterable[Any]]:
            return {"train": [], "test": [samples()]}

    for task, reason in ((Without(), "train and test"), (Names(), "pairs"), (Empty(), "nothing")):
        with pytest.raises(UserError, match=reason):
            task.data("train")
