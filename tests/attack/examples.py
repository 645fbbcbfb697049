"""A regression to attack, randomness to attack it with, and a plain training loop."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fewer.core.data import TensorData
from fewer.core.engines.base import Training
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.seed import Stream
from fewer.core.task import Nets, Noise, Objective, Task

torch.set_num_threads(1)


class Pairs(NamedTuple):
    known: Tensor
    wanted: Tensor


class Regression(Task[Pairs]):
    """Five numbers to two, each number with its own legal range: attackable, with no classes."""

    def __init__(self) -> None:
        noise = stream(5, dtype=torch.float64)
        known = noise.uniform("known", (96, 5)) * torch.tensor([1.0, 2.0, 4.0, 1.0, 1.0])
        self.samples = TensorData(Pairs(known, torch.stack([known.sin().sum(1), known[:, 0] * known[:, 1]], 1)))
        self.bounds = torch.zeros(5), torch.tensor([1.0, 2.0, 4.0, 1.0, 1.0])

    def networks(self) -> dict[str, nn.Module]:
        return {"net": nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.BatchNorm1d(16), nn.Linear(16, 2))}

    def objectives(self) -> tuple[Objective[Pairs], ...]:
        return (Objective(("net",), lambda nets, batch, noise: self._error(nets, batch).mean()),)

    def _error(self, nets: Nets, batch: Pairs) -> Tensor:
        error: Tensor = (nets.net(batch.known) - batch.wanted).square().sum(1)
        return error

    def data(self, split: str) -> TensorData[Pairs]:
        return self.samples

    def inputs(self, batch: Pairs) -> Tensor:
        return batch.known

    def predict(self, nets: Nets, inputs: Tensor, noise: Noise) -> Tensor:
        answer: Tensor = nets.net(inputs)
        return answer

    def evaluate(self, split: str) -> Generator[Pairs, Tensor, dict[str, float]]:
        batch = self.samples.samples
        answer = yield batch
        return {"score": -float((answer - batch.wanted).square().mean())}

    def perturbable(self, batch: Pairs) -> Tensor:
        return batch.known

    def replace(self, batch: Pairs, perturbable: Tensor) -> Pairs:
        return batch._replace(known=perturbable)

    def attack_loss(self, nets: Nets, batch: Pairs, noise: Noise) -> Tensor:
        return self._error(nets, batch)


def stream(seed: int = 0, step: int = 0, dtype: torch.dtype = torch.float32) -> Stream:
    return Stream(torch.tensor(seed), torch.tensor(step), dtype)


def train(task: Task[Any], steps: int, *, batch: int = 128, rate: float = 2e-3) -> NetworkSet:
    """The task's networks after so many steps of the reference engine."""
    engine = Plain(task, Training(steps, batch, Optimizer(lr=rate)))
    engine.advance(steps)
    return NetworkSet(engine.state.modules_of(0), training=False)
