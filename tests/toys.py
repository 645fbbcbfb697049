"""Small problems of every kind: regression, blobs, images with norms, an actor with two critics, a fixed graph."""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.data import TensorData
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.optimizer import Optimizer
from fewer.core.seed import Stream
from fewer.core.task import Copy, Nets, Noise, Objective, Task

torch.set_num_threads(1)


def stream(seed: int = 0, step: int = 0, dtype: torch.dtype = torch.float64) -> Stream:
    """Noise as an engine would hand it out."""
    return Stream(torch.tensor(seed), torch.tensor(step), dtype)


class Pairs(NamedTuple):
    x: Tensor
    y: Tensor


class Fit(Task[Pairs]):
    """Four numbers to one, attackable in the numbers."""

    def __init__(self) -> None:
        x = stream(7).uniform("x", (60, 4)) * 2 - 1
        self.samples = TensorData(Pairs(x, (x.square().sum(1, keepdim=True)).sin()))
        self.bounds = torch.tensor(-1.0), torch.tensor(1.0)

    def networks(self) -> dict[str, nn.Module]:
        return {"net": nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 1))}

    def objectives(self) -> tuple[Objective[Any], ...]:
        return (Objective(("net",), self.loss),)

    def loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return self.attack_loss(nets, batch, noise).mean()

    def data(self, split: str) -> TensorData[Pairs]:
        return self.samples

    def inputs(self, batch: Any) -> Any:
        return batch.x

    def predict(self, nets: Nets, inputs: Any, noise: Noise) -> Tensor:
        answer: Tensor = nets.net(inputs)
        return answer

    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        batch = self.data(split).samples
        answer = yield batch
        return {"score": -float((answer - batch.y).square().mean())}

    def perturbable(self, batch: Any) -> Tensor:
        surface: Tensor = batch.x
        return surface

    def replace(self, batch: Any, surface: Tensor) -> Any:
        return batch._replace(x=surface)

    def attack_loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        error: Tensor = (nets.net(batch.x) - batch.y).square().sum(1)
        return error


class Untrained(Fit):
    """A fixed network beside the trained one, with a copy and a partner of its own."""

    def networks(self) -> dict[str, nn.Module]:
        return {**super().networks(), "fixed": nn.Linear(4, 4), "twin": nn.Linear(4, 4)}

    def copies(self) -> dict[str, Copy]:
        return {"fixed_target": Copy("fixed")}

    def same_mask(self) -> dict[str, str]:
        return {"twin": "fixed"}


class BiasFree(Fit):
    """Linear layers without biases, alone and in a chain."""

    def networks(self) -> dict[str, nn.Module]:
        linear = functools.partial(nn.Linear, bias=False)
        chain = nn.Sequential(linear(12, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), linear(6, 4))
        return {"net": nn.Sequential(linear(4, 12), nn.Tanh(), chain, nn.Tanh(), nn.Linear(4, 1))}


class Tied(Fit):
    """Two layers that share one weight and not their biases."""

    def networks(self) -> dict[str, nn.Module]:
        first, second = nn.Linear(4, 4), nn.Linear(4, 4)
        second.weight = first.weight
        return {"net": nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))}


class Convolved(Fit):
    """Grouped and transposed convolutions before a linear layer."""

    def networks(self) -> dict[str, nn.Module]:
        grouped = nn.Conv1d(4, 8, 3, padding=1, groups=2, bias=False)
        transposed = nn.ConvTranspose1d(8, 4, 2, stride=2, groups=2)
        body = (nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 4, 3, padding=1), nn.Tanh(), grouped, nn.Tanh(), transposed)
        return {"net": nn.Sequential(*body, nn.Tanh(), nn.Flatten(), nn.Linear(32, 1))}


class Blobs(Fit):
    """Three classes of points: a classifier, so that GraSP takes its temperature."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.width = width
        label = torch.arange(60) % 3
        x = stream(3).normal("x", (60, 4)) * 0.3 + functional.one_hot(label, 4) * 1.0
        self.samples = TensorData(Pairs(x.clamp(-2, 2), label))
        self.bounds = torch.tensor(-2.0), torch.tensor(2.0)

    def networks(self) -> dict[str, nn.Module]:
        return {"net": nn.Sequential(nn.Linear(4, self.width), nn.ReLU(), nn.Linear(self.width, 3))}

    def attack_loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return functional.cross_entropy(nets.net(batch.x), batch.y, reduction="none")

    def logits(self, nets: Nets, inputs: Any, noise: Noise) -> Tensor:
        return self.predict(nets, inputs, noise)

    def labels(self, batch: Any) -> Tensor:
        labels: Tensor = batch.y
        return labels

    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        batch = self.data(split).samples
        answer = yield batch
        return {"accuracy": float((answer.argmax(1) == batch.y).double().mean())}


class Residual(nn.Module):
    """A convolution, a norm, a residual block, a maximum pool, a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.block = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.block_norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(4 * 4 * 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.silu(self.norm(self.stem(x)))
        x = self.pool(x + functional.silu(self.block_norm(self.block(x))))
        answer: Tensor = self.head(x.flatten(1))
        return answer


class Patches(Blobs):
    """Images of 8 x 8 for a convolutional network with batch norms."""

    def __init__(self) -> None:
        super().__init__()
        label = torch.arange(48) % 3
        x = stream(5).uniform("x", (48, 1, 8, 8)) * 0.5
        x[torch.arange(48), 0, label * 2] += 0.5
        self.samples = TensorData(Pairs(x, label))
        self.bounds = torch.tensor(0.0), torch.tensor(1.0)

    def networks(self) -> dict[str, nn.Module]:
        return {"net": Residual()}


class Steps(NamedTuple):
    state: Tensor
    action: Tensor
    reward: Tensor


class Critic(nn.Module):
    """Q(state, action), two arguments: two input groups."""

    def __init__(self, states: int = 5, actions: int = 2, width: int = 16) -> None:
        super().__init__()
        self.l1, self.l2, self.l3 = nn.Linear(states + actions, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        hidden = self.l2(self.l1(torch.cat([state, action], 1)).relu()).relu()
        answer: Tensor = self.l3(hidden)
        return answer


class Control(Task[Steps]):
    """An actor, two critics that share a mask, targets, turns, clipping, an optimiser each, noise in a loss."""

    def __init__(self, scale: float = 1.0, slow: int = 2) -> None:
        noise = stream(11)
        state = noise.normal("state", (64, 5)) * scale
        action = noise.uniform("action", (64, 2)) * 2 - 1
        reward = torch.tanh(state[:, :1] / scale) + 0.01 * action[:, :1]
        self.samples, self.slow = TensorData(Steps(state, action, reward)), slow

    def networks(self) -> dict[str, nn.Module]:
        actor = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2), nn.Tanh())
        return {"actor": actor, "critic": Critic(), "critic2": Critic()}

    def copies(self) -> dict[str, Copy]:
        return {"critic_target": Copy("critic", 0.1), "critic2_target": Copy("critic2", 0.1, every=2)}

    def same_mask(self) -> dict[str, str]:
        return {"critic2": "critic"}

    def objectives(self) -> tuple[Objective[Any], ...]:
        return (
            Objective(("critic", "critic2"), self.critic_loss, optimizer=Optimizer("adamw", 3e-3, clip=0.5)),
            Objective(("actor",), self.actor_loss, every=self.slow, optimizer=Optimizer("sgd", 1e-2, weight_decay=0.1)),
        )

    def critic_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        action = nets.actor(batch.state) + 0.1 * noise.normal("action", tuple(batch.action.shape))
        target = batch.reward + 0.5 * torch.minimum(
            nets.critic_target(batch.state, action), nets.critic2_target(batch.state, action)
        )
        first, second = nets.critic(batch.state, batch.action), nets.critic2(batch.state, batch.action)
        return functional.mse_loss(first, target.detach()) + functional.mse_loss(second, target.detach())

    def actor_loss(self, nets: Nets, batch: Steps, noise: Noise) -> Tensor:
        value: Tensor = nets.critic(batch.state, nets.actor(batch.state))
        return -value.mean()

    def data(self, split: str) -> TensorData[Steps]:
        return self.samples

    def inputs(self, batch: Steps) -> Tensor:
        return batch.state

    def predict(self, nets: Nets, inputs: Any, noise: Noise) -> Tensor:
        answer: Tensor = nets.actor(inputs)
        return answer

    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        answer = yield self.samples.samples
        return {"action": float(answer.double().mean())}


class Graph(Fit):
    """A fit whose inputs are first mixed over a fixed graph: the constants have to follow device and precision."""

    def __init__(self) -> None:
        super().__init__()
        self.constants = {"mixing": torch.full((4, 4), 0.1) + torch.eye(4) * 0.6}

    def predict(self, nets: Nets, inputs: Any, noise: Noise) -> Tensor:
        answer: Tensor = nets.net(inputs @ self.constants["mixing"])
        return answer

    def attack_loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        error: Tensor = (self.predict(nets, batch.x, noise) - batch.y).square().sum(1)
        return error


def doubled(task: Task[Any], seed: int = 0) -> dict[str, nn.Module]:
    """Fresh modules of a task in float64, copies included."""
    from fewer.core.engines.state import fresh_modules

    return {name: module.double() for name, module in fresh_modules(task, seed).items()}


def networks(task: Task[Any], seed: int = 0) -> NetworkSet:
    """The same, to be called by name."""
    return NetworkSet(doubled(task, seed))
