"""The contract: what a problem has to say about itself so that every method works on it.

A task holds no weights. Its losses are pure, written for one replica in ordinary torch, so that the same lines
run on one network (`plain`), on many in lock-step (`cohort`) and on kept weights alone (`sparse`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from torch import Tensor, nn

from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.stochastic import draws
from fewer.core.recipe import Recipe

__all__ = ["Batch", "Copy", "Data", "Inputs", "Nets", "Noise", "Objective", "Predict", "Task"]

Batch = TypeVar("Batch")  # a NamedTuple or dict of tensors, no None; samples on axis 0 of every leaf
BatchOut = TypeVar("BatchOut", covariant=True)
Inputs = Any  # a tensor, NamedTuple or dict of tensors, samples on axis 0
Nets = Any  # nets.critic(state, action): a call by name, and nothing else
Predict = Callable[[Any], Tensor]  # batch -> prediction; pruned, packed, attacked and voting models are all this


class Noise(Protocol):
    """Randomness as data: a pure function of the replica's seed, the step and a name.

    Asking twice for the same name gives the same numbers, so a loss can be differentiated twice, a killed run
    goes on to the bit, and a replica draws in a cohort what it draws alone. Use one name per purpose.
    """

    @property
    def step(self) -> Tensor: ...  # a scalar integer; for schedules such as budget ramps
    def normal(self, name: str, shape: tuple[int, ...]) -> Tensor: ...
    def uniform(self, name: str, shape: tuple[int, ...]) -> Tensor: ...  # in [0, 1)


def _augmented(loss: Any, augment: Callable[[Any, Noise], Any]) -> Any:
    """The loss of the augmented batch; one that augments already stays as it is."""
    if hasattr(loss, "bare"):
        return loss

    def call(nets: Nets, batch: Any, noise: Noise) -> Tensor:
        found: Tensor = loss(nets, augment(batch, noise), noise)
        return found

    call.bare = loss  # type: ignore[attr-defined]
    return call


@dataclass(frozen=True)
class Objective(Generic[Batch]):
    """A scalar to descend and the networks it may move. The first to name a network also scores it for pruning."""

    trains: tuple[str, ...]
    loss: Callable[[Nets, Batch, Noise], Tensor]  # pure but for buffers; no .item(), no branch on a tensor's value
    every: int = 1
    optimizer: Optimizer | None = None  # None: the run's. One state per objective, counting its own steps
    augment: Callable[[Batch, Noise], Batch] | None = None  # what training sees of a batch, before any adversary does

    def __post_init__(self) -> None:
        loss = self.loss if self.augment is None else _augmented(self.loss, self.augment)
        object.__setattr__(self, "loss", draws(loss))  # dropout reads the loss's noise, whoever calls it

    @property
    def bare(self) -> Callable[[Nets, Batch, Noise], Tensor]:
        """The loss of the batch as it is given: what a hardening attacks, since an adversary comes last."""
        found: Callable[[Nets, Batch, Noise], Tensor] = getattr(self.loss, "bare", self.loss)
        return found


@dataclass(frozen=True)
class Copy:
    """A target network: made, masked and moved by the engine like its source, never trained."""

    of: str
    tau: float = 0.005  # how far it moves towards its source
    every: int = 1


class Data(Protocol[BatchOut]):
    """A finite set of samples. The engine chooses the order from (seed, step); data only looks samples up."""

    in_memory: bool  # False: read from disk, and one order is shared by the whole cohort

    def __len__(self) -> int: ...
    def take(self, index: Tensor) -> BatchOut: ...


class Task(ABC, Generic[Batch]):
    """A problem: its data, its networks, what each minimises, how well it went."""

    constants: Mapping[str, Tensor] = {}  # graphs, maps: moved to the device once, shared by all replicas
    whole: tuple[str, ...] = ()  # "net.table", "*.places": what pruning leaves whole
    only: tuple[str, ...] = ()  # what alone it may touch; none: every matrix
    recommended: Mapping[str, Any] = {}  # fields of Training that suit the task: {"steps": 2000, "batch": 128}

    @classmethod
    def recipe(cls, settings: Any) -> Recipe:
        """How it is trained by default under these settings (None where it has none), and what `--prune auto` does."""
        return Recipe(cls.recommended)

    @abstractmethod
    def networks(self) -> dict[str, nn.Module]:
        """Fresh modules by name, drawn from torch's global generator, which the engine has seeded."""

    @abstractmethod
    def objectives(self) -> tuple[Objective[Batch], ...]:
        """In the order of one training step."""

    @abstractmethod
    def data(self, split: str) -> Data[Batch]:
        """`train`, `validation` or `test`."""

    @abstractmethod
    def inputs(self, batch: Batch) -> Inputs:
        """What is known when predicting: no labels."""

    @abstractmethod
    def predict(self, nets: Nets, inputs: Inputs, noise: Noise) -> Tensor:
        """In eval mode; in a space where a mean over members makes sense."""

    @abstractmethod
    def evaluate(self, split: str) -> Generator[Batch, Tensor, dict[str, float]]:
        """Yields batches, is sent predictions, returns metrics: test sets and roll-outs alike.

        The first metric returned is the one that matters; larger is better.
        """

    def copies(self) -> dict[str, Copy]:
        """Target networks by name, such as {"critic_target": Copy("critic")}; they exist before scoring."""
        return {}

    def same_mask(self) -> dict[str, str]:
        """Networks that take another's mask, such as {"critic2": "critic"}."""
        return {}
