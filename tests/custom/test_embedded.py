"""Whole numbers are attacked and hardened where a table has made vectors of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.attack.attacks.fgsm import fgsm
from fewer.cli import main
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.state import fresh_modules
from fewer.custom.contract import check
from fewer.custom.supervised import Classification
from tests.toys import stream

torch.set_num_threads(1)


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(7, 4), nn.Linear(4, 2)

    def forward(self, tokens: Tensor, mask: Tensor) -> dict[str, Tensor]:
        return {"logits": self.head((self.words(tokens) * mask[..., None]).mean(1))}


class Mood(Classification):
    recommended = {"steps": 60, "batch": 32}

    def model(self) -> nn.Module:
        return Reader()

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        tokens = torch.randint(0, 7, (120, 5), generator=torch.Generator().manual_seed(0))
        batch = {"mask": torch.ones(120, 5, dtype=torch.long), "tokens": tokens, "labels": (tokens[:, 0] > 3).long()}
        return {"train": [batch], "test": [batch]}


MOOD = f"{__name__}:{Mood.__name__}"


def test_the_shift_is_added_to_the_tables_answer_and_forgotten_after_the_call() -> None:
    task = Mood()
    net = fresh_modules(task, 0)["net"]
    batch = task.data("train").take(torch.arange(3))
    assert task.perturbable(batch).shape == (3, 5, 4)
    shift = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(1))
    nets = NetworkSet({"net": net}, training=False)
    moved = task.logits(nets, task.inputs(task.replace(batch, shift)), stream())
    expected = net.head((net.words(batch.x["tokens"]) + shift).mean(1))  # type: ignore[operator]
    assert torch.allclose(moved, expected)
    assert torch.equal(task.logits(nets, batch.x, stream()), net(*batch.x.values()))


def test_an_attack_stays_in_its_ball_and_hurts() -> None:
    task = Mood()
    nets, batch = NetworkSet(fresh_modules(task, 0), training=False), task.data("train").take(torch.arange(50))
    attacked = fgsm(task, 0.1)(nets, batch, stream(dtype=torch.float32))
    assert float(task.perturbable(attacked).detach().abs().max()) <= 0.1 + 1e-6
    losses = [float(task.attack_loss(nets, some, stream()).detach().mean()) for some in (batch, attacked)]
    assert losses[1] > losses[0]


def test_such_a_task_honours_the_whole_contract() -> None:
    outcomes = check(Mood())
    assert [(o.name, o.fault, o.skipped) for o in outcomes if o.fault or o.skipped] == []


@pytest.mark.parametrize("recipe", ["pgd:0.1", "trades:0.1", "free:0.1"])
def test_it_is_hardened_and_evaluated(recipe: str, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    assert main(["train", MOOD, "--harden", recipe, "--prune", "snip", "--sparsity", "0.5", "--out", out]) == 0
    assert main(["evaluate", out, "--attack", "suite:0.1", "--limit", "20"]) == 0
