"""A task of one's own: a pendulum's next state from its present one, with a push that an adversary may change.

cd examples
fewer check own_task:Pendulum
fewer train own_task:Pendulum --prune snip --sparsity 0.8 --harden fgsm:0.1 --out runs/pendulum
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fewer import Nets, Noise, Objective, Optimizer, Task, TensorData, batches


@dataclass(frozen=True)
class Settings:
    """Set from the command line with --set key=value."""

    width: int = field(default=48, metadata={"help": "units in each hidden layer", "unit": "units"})
    samples: int = field(default=2000, metadata={"help": "of which a fifth is held out", "unit": "swings"})


class Swings(NamedTuple):
    """A batch."""

    state: Tensor  # (batch, 2): angle in radians, speed in radians per second
    push: Tensor  # (batch, 1): acceleration in radians per second squared
    after: Tensor  # (batch, 2): the state 0.1 s later


class Pendulum(Task[Swings]):
    """Learn the dynamics; attackable in the push."""

    recommended = {"steps": 400, "batch": 64, "optimizer": Optimizer("adam", lr=3e-3, decay_from=0.5)}

    def __init__(self, settings: Settings = Settings()) -> None:  # noqa: B008  frozen
        lot = torch.Generator().manual_seed(0)
        drawn = torch.rand(settings.samples, 3, generator=lot) * 2 - 1
        state, push = drawn[:, :2] * torch.tensor([math.pi, 4.0]), drawn[:, 2:]
        samples = Swings(state, push, _swing(state, push))
        cut = settings.samples * 4 // 5
        self.width = settings.width
        self.splits = {
            "train": TensorData(Swings(*(leaf[:cut] for leaf in samples))),
            "test": TensorData(Swings(*(leaf[cut:] for leaf in samples))),
        }
        self.bounds = torch.tensor(-1.0), torch.tensor(1.0)

    def networks(self) -> dict[str, nn.Module]:
        layers = [nn.Linear(3, self.width), nn.Tanh(), nn.Linear(self.width, self.width), nn.Tanh()]
        return {"net": nn.Sequential(*layers, nn.Linear(self.width, 2))}

    def objectives(self) -> tuple[Objective[Swings], ...]:
        return (Objective(("net",), lambda nets, batch, noise: self.attack_loss(nets, batch, noise).mean()),)

    def data(self, split: str) -> TensorData[Swings]:
        return self.splits["train" if split == "train" else "test"]

    def inputs(self, batch: Swings) -> Tensor:
        return torch.cat([batch.state, batch.push], 1)

    def predict(self, nets: Nets, inputs: Tensor, noise: Noise) -> Tensor:
        change: Tensor = nets.net(inputs)
        return inputs[:, :2] + change

    def evaluate(self, split: str) -> Generator[Swings, Tensor, dict[str, float]]:
        data, error = self.data(split), 0.0
        for index in batches(data, 500):
            batch = data.take(index)
            error += float(((yield batch) - batch.after).square().sum())
        return {"fit": 1 - error / float((data.samples.after - data.samples.state).square().sum())}

    def perturbable(self, batch: Swings) -> Tensor:
        return batch.push

    def replace(self, batch: Swings, surface: Tensor) -> Swings:
        return batch._replace(push=surface)

    def attack_loss(self, nets: Nets, batch: Swings, noise: Noise) -> Tensor:
        return (self.predict(nets, self.inputs(batch), noise) - batch.after).square().sum(1)


def _swing(state: Tensor, push: Tensor) -> Tensor:
    """A tenth of a second of a pendulum of a metre, in ten steps."""
    angle, speed = state.split(1, 1)
    for _ in range(10):
        speed = speed + 0.01 * (push - 9.81 * angle.sin())
        angle = angle + 0.01 * speed
    return torch.cat([angle, speed], 1)
