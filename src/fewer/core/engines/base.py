"""One training step, whatever the engine: sample, descend each objective, move the target copies.

Engines differ in one thing only, how an objective's losses and gradients are computed for all replicas: `Plain` runs
real modules for one replica, `Cohort` vmaps the forward over stacked weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fewer.core.data import TensorData, convert, place_constants_, placed
from fewer.core.engines import PRECISIONS, optimizer
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.state import start
from fewer.core.errors import UserError
from fewer.core.seed import shuffled
from fewer.core.task import Objective, Task

__all__ = ["Engine", "Training", "check_device", "move_"]

Parts = tuple[Tensor, Tensor, Tensor | None, optimizer.State]  # weights, gradient, mask, moments

_AHEAD = 32  # steps whose order is computed at once on a CPU: many small operations in one


@dataclass(frozen=True)
class Training:
    """How long, on what, how exactly."""

    steps: int = 1000
    batch: int = 128
    optimizer: Optimizer = field(default_factory=Optimizer)
    device: str = "cpu"
    precision: str = "float32"  # float64 for comparisons; bfloat16 autocasts the forward (plain only)
    tf32: bool = True  # matrix products on CUDA with 10-bit mantissas
    compile: bool = False  # on CUDA: fused kernels by torch.compile, of networks (plain) or whole losses (cohort)
    validate_every: int = 0  # steps between validations; the run ends with the best weights; 0: with the last
    patience: int = 0  # early stopping: validations without improvement after which training stops; 0: never

    def __post_init__(self) -> None:
        if self.steps < 0 or self.batch < 1:
            raise UserError(f"{self.steps} steps of {self.batch} samples", "steps >= 0 and batch >= 1")
        if self.validate_every < 0 or self.patience < 0 or (self.patience and not self.validate_every):
            raise UserError(
                f"patience {self.patience}, validation every {self.validate_every} steps",
                "neither below 0, and patience "
                "only with validations to count", "set validate_every",
            )  # fmt: skip
        if self.precision not in PRECISIONS:
            raise UserError(f"precision {self.precision!r}", f"one of {', '.join(PRECISIONS)}")
        check_device(self.device)
        number = int(self.device.partition(":")[2] or 0)
        if self.device.startswith("cuda") and number >= torch.cuda.device_count():
            raise UserError(f"device {self.device}", "a CUDA GPU that torch can see", "use --device cpu")

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.precision == "float64" else torch.float32  # bfloat16 keeps its weights in float32


def check_device(name: str) -> None:
    """Refuse what is no device's name, whether or not the device is here."""
    if name not in ("cpu", "cuda") and not (name.startswith("cuda:") and name[5:].isdecimal()):
        raise UserError(f"device {name!r}", "cpu, cuda or cuda:N")


class Engine(ABC):
    """Holds a state and advances it."""

    def __init__(
        self,
        task: Task[Any],
        training: Training,
        seeds: Sequence[int],
        *,
        modules: Sequence[Mapping[str, nn.Module]] | None = None,
    ) -> None:
        self.task, self.training = task, training
        self.device = torch.device(training.device)
        if self.device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = training.tf32
            torch.backends.cudnn.allow_tf32 = training.tf32
        self.objectives = task.objectives()
        self.copies = task.copies()
        self.settings = [objective.optimizer or training.optimizer for objective in self.objectives]
        place_constants_(task, self.device, training.dtype)
        self.data = placed(task.data("train"), self.device, training.dtype)
        if len(self.data) == 0:
            raise UserError("a training split without samples", "at least one")
        self.state = start(task, seeds, self.settings, device=self.device, dtype=training.dtype, modules=modules)
        self.seeds = torch.tensor(seeds, dtype=torch.int64, device=self.device)
        self.losses = torch.zeros(len(self.objectives), len(seeds), dtype=torch.float64, device=self.device)
        self.count = 0  # finished steps, as a number: what decides which objectives take their turn
        self.ahead = (-1, self.seeds)  # on a CPU: a first step and the order of those that follow
        self.counted = [0] * len(self.objectives)  # turns whose losses `mean_losses` has already given
        self.chosen: tuple[int, ...] = ()  # where validation chose: the step whose weights each replica ended with

    def adopt_(self, other: Engine) -> None:
        """Take over another engine's training where it stands, instead of starting one."""
        self.task, self.training, self.device = other.task, other.training, other.device
        self.objectives, self.copies, self.settings = other.objectives, other.copies, other.settings
        self.data, self.state, self.seeds = other.data, other.state, other.seeds
        self.losses, self.count, self.ahead = other.losses, other.count, other.ahead
        self.counted, self.chosen = other.counted, other.chosen

    @abstractmethod
    def gradients(self, objective: Objective[Any], batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """Losses (replicas,), and for each network it trains the gradient (replicas, weights)."""

    def begin_(self) -> None:  # noqa: B027  most engines have nothing to do
        """Called once, when the first state is complete: pruned, or restored."""

    def rate(self, index: int, update: Tensor, total: int) -> Tensor:
        """The learning rate of an objective's update: a scalar, or (replicas, 1)."""
        return optimizer.learning_rate(self.settings[index], update, total)

    def agreed(self, numbers: Tensor) -> Tensor:
        """What all processes of one training go by; alone, one's own."""
        return numbers

    def advance(self, steps: int) -> None:
        """That many steps."""
        for _ in range(steps):
            self.step_()

    def density(self) -> float:
        """Share of all parameters that is kept, of the first replica, target copies apart."""
        counts = [self.state.kept_of(name) for name in self.state.networks if name not in self.copies]
        return sum(kept for kept, _ in counts) / max(sum(total for _, total in counts), 1)

    def mean_losses(self) -> Tensor:
        """(objectives, replicas): the mean since the last call, NaN where an objective took no turn."""
        turns = [self._turns(objective) for objective in self.objectives]
        counted = torch.tensor([now - before for now, before in zip(turns, self.counted)], dtype=torch.float64)
        mean = self.losses.cpu() / torch.where(counted > 0, counted, torch.nan)[:, None]
        self.losses.zero_()
        self.counted = turns
        return mean

    def _turns(self, objective: Objective[Any]) -> int:
        """How many steps the objective has taken."""
        return -(-self.count // objective.every)

    def step_(self) -> None:
        batch = self._sample()
        for index, objective in enumerate(self.objectives):
            if self.count % objective.every == 0:
                losses, gradients = self.gradients(objective, batch)
                self.losses[index] += losses.detach()
                self._descend_(index, objective, gradients)
        for name, target in self.copies.items():
            if self.count % target.every == 0:
                self._follow_(name, target.of, target.tau)
        self.state.step += 1
        self.count += 1

    def _sample(self) -> Any:
        """A batch for every replica: leaves (replicas, batch, ...), or (batch, ...) where all share one order."""
        index = self._order()
        if isinstance(self.data, TensorData):
            flat = self.data.take(index.reshape(-1))
        else:
            # numbers for the CPU wait for the device: not where the data lie there already
            here = index if getattr(self.data, "device", None) == self.device else index.cpu()
            flat = convert(self.data.take(here.reshape(-1)), self.device, self.training.dtype)
        if not self.data.in_memory:
            return flat
        return pytree.tree_map(lambda leaf: leaf.view(*index.shape, *leaf.shape[1:]), flat)

    def _order(self) -> Tensor:
        """(replicas, batch): which samples this step takes, from the seeds and the step alone."""
        seeds = self.seeds[:, None] if self.data.in_memory else self.seeds[:1, None]
        size = self.training.batch
        if self.device.type != "cpu":  # on the device, from the device's step: a captured graph follows it
            return shuffled(seeds, self.state.step * size + torch.arange(size, device=self.device), len(self.data))
        begin = self.count - self.count % _AHEAD
        if begin != self.ahead[0]:
            positions = torch.arange(begin * size, (begin + _AHEAD) * size)
            self.ahead = begin, shuffled(seeds, positions, len(self.data)).unflatten(1, (_AHEAD, size))
        return self.ahead[1][:, self.count - begin]

    @torch.no_grad()
    def _descend_(self, index: int, objective: Objective[Any], gradients: dict[str, Tensor]) -> None:
        settings = self.settings[index]
        update = torch.div(self.state.step, objective.every, rounding_mode="floor")
        total = -(-self.training.steps // objective.every)
        rate = self.rate(index, update, total)
        if settings.clip or settings.clip_value:
            gradients = _clipped(
                settings, {name: _masked(g, self.state.networks[name].mask) for name, g in gradients.items()}
            )
        for name, gradient in gradients.items():
            self.update_((index, name), gradient, rate, update)

    def update_(self, place: tuple[int, str], gradient: Tensor, rate: Tensor, update: Tensor) -> None:
        """Move one network's weights; `place` is the number of the objective and the name of the network."""
        index, name = place
        network, settings = self.state.networks[name], self.settings[index]
        move_(settings, (network.weights, gradient, network.mask, self.state.moments[index][name]), rate, update)

    @torch.no_grad()
    def _follow_(self, name: str, source: str, tau: float) -> None:
        target, leader = self.state.networks[name], self.state.networks[source]
        target.weights.lerp_(leader.weights, tau)
        for key, buffer in target.buffers.items():
            buffer.copy_(leader.buffers[key])

    def restore_(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a saved state."""
        self.state.load_(tensors)
        self.count = int(self.state.step)
        if not 0 <= self.count <= self.training.steps:
            raise UserError(
                f"a saved state after step {self.count}", f"one of this training's {self.training.steps} steps",
                "train anew",
            )  # fmt: skip
        self.counted = [self._turns(objective) for objective in self.objectives]


def move_(settings: Optimizer, parts: Parts, rate: Tensor, update: Tensor) -> None:
    """One descent on (replicas, weights), inside the mask."""
    weights, gradient, mask, moments = parts
    optimizer.update_(settings, weights, _masked(gradient, mask), moments, rate=rate, step=update)
    if mask is not None and settings.weight_decay:
        weights.mul_(mask)  # without decay a pruned weight has no gradient and no moments, and does not move


def _masked(gradient: Tensor, mask: Tensor | None) -> Tensor:
    return gradient if mask is None else gradient * mask


def _clipped(settings: Optimizer, gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Numbers bounded, then each replica's norm over all the networks."""
    found = dict(gradients)
    if bound := settings.clip_value:
        found = {name: gradient.clamp(-bound, bound) for name, gradient in found.items()}
    if settings.clip:
        norm = sum(gradient.square().sum(1, keepdim=True) for gradient in found.values())
        scale = (settings.clip / (torch.as_tensor(norm).sqrt() + 1e-6)).clamp(max=1.0)
        found = {name: gradient * scale for name, gradient in found.items()}
    return found
