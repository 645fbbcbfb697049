"""Attacks on the first samples of a split, also of tasks that are no classifiers."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fewer.attack.metrics import under_attack
from fewer.cli import main
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.limited import Limited
from tests.toys import Fit

_FIRST = 5
Lines = pytest.CaptureFixture[str]


class OnDisk:
    """The samples of another, read when asked for."""

    in_memory = False

    def __init__(self, samples: Any) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def take(self, index: Tensor) -> Any:
        return self.samples.take(index)


class Read(Fit):
    def data(self, split: str) -> Any:
        return OnDisk(self.samples)

    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        data = self.data(split)
        batch = data.take(torch.arange(len(data)))
        return {"score": -float(((yield batch) - batch.y).square().mean())}


class Helped(Read):
    """Judged by a method of its own and by that of the class above."""

    def judged(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        return (yield from super().evaluate(split))

    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        return (yield from self.judged(split))


class Episodes(Fit):
    """Judged by steps of its own, not by its split."""

    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        for _ in range(4):
            yield self.samples.take(torch.arange(2))
        return {"score": 0.0}


@pytest.mark.parametrize("task", [Fit(), Read(), Helped()], ids=["in memory", "on a disk", "by helpers"])
def test_a_limit_judges_the_first_samples_alone(task: Fit) -> None:
    modules = fresh_modules(task, 0)
    batch = task.samples.take(torch.arange(_FIRST))
    by_hand = -float((predictor(task, modules)(batch) - batch.y).square().mean())
    assert evaluate(Limited(task, _FIRST), predictor(task, modules))["score"] == pytest.approx(by_hand)
    assert under_attack(task, modules, "pgd:0", limit=_FIRST)["score"] == pytest.approx(by_hand)
    assert under_attack(task, modules, "pgd:0.1", limit=_FIRST)["score"] < by_hand
    assert under_attack(task, modules, "pgd:0.1", limit=1000) == under_attack(task, modules, "pgd:0.1")


def test_a_task_that_is_not_judged_on_its_split_refuses_a_limit() -> None:
    task = Episodes()
    assert Limited(task, 8).data("test").take(torch.arange(1)) is not None
    evaluate(Limited(task, 8), predictor(task, fresh_modules(task, 0)))
    with pytest.raises(UserError, match="episodes"):
        evaluate(Limited(task, 7), predictor(task, fresh_modules(task, 0)))


def test_evaluate_takes_attack_and_limit_for_a_regression(tmp_path: Path, capsys: Lines) -> None:
    out = tmp_path / "run"
    assert main(["train", "tests.toys:Fit", "--steps", "2", "--batch", "8", "--out", str(out), "--json"]) == 0
    capsys.readouterr()
    found = []
    for words in (["--limit", "5"], []):
        assert main(["evaluate", str(out), "--attack", "pgd:0.1", *words, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["score under pgd:0.1"])
    assert found[0] != found[1]
    assert main(["evaluate", str(out), "--attack", "pgd:0.1", "--limit", "0"]) == 2
    assert "limit" in capsys.readouterr().err
