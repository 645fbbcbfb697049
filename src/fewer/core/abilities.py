"""Optional abilities of a task: what a method may ask for beyond the contract, and nothing more.

A method that needs one says so with `ability`, which refuses a task that lacks it in one clear line.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from fewer.core.errors import UserError
from fewer.core.task import Inputs, Nets, Noise, Task

__all__ = [
    "Attackable",
    "Classifier",
    "Featured",
    "Grouped",
    "Spare",
    "Together",
    "Voting",
    "ability",
    "perturbable_input",
]

Ability = TypeVar("Ability")


@runtime_checkable
class Attackable(Protocol):
    """The task can say what an adversary may change and what hurts."""

    bounds: tuple[Tensor, Tensor]  # lowest and highest legal perturbable, broadcast to it

    def perturbable(self, batch: Any) -> Tensor:
        """What an adversary may change, in the input's own units; samples on axis 0."""

    def replace(self, batch: Any, perturbable: Tensor) -> Any:
        """The batch with that perturbable instead."""

    def attack_loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        """Per sample, what the adversary increases."""


@runtime_checkable
class Classifier(Protocol):
    """The task chooses among classes; TRADES, MART and margin attacks need the scores themselves."""

    def logits(self, nets: Nets, inputs: Inputs, noise: Noise) -> Tensor:
        """(batch, classes), unnormalised."""

    def labels(self, batch: Any) -> Tensor:
        """(batch,), integer."""


@runtime_checkable
class Featured(Protocol):
    """The task's answer is linear in features that can be measured one by one."""

    def features(self, nets: Nets, inputs: Inputs) -> Tensor:
        """(batch, features): the input of the last linear layer."""

    def head(self) -> tuple[str, str]:
        """Network and weight parameter of the last linear layer, such as ("net", "head.weight")."""


@runtime_checkable
class Spare(Protocol):
    """Some of the task's networks have outputs that they can do without, as an encoder has latent variables."""

    def spare(self) -> tuple[str, ...]:
        """Networks of which a mask may cut single outputs off."""


@runtime_checkable
class Together(Protocol):
    """The task judges many replicas at once for less than one by one, as where a simulator steps all episodes."""

    def evaluate_together(self, split: str, replicas: int) -> Generator[Any, Tensor, list[dict[str, float]]]:
        """As `evaluate`, with a leading axis of replicas on every leaf and on the predictions."""


@runtime_checkable
class Grouped(Protocol):
    """The task's samples fall into groups, such as regions, that different members of an ensemble may answer best."""

    def groups(self, batch: Any) -> Tensor:
        """(batch,), integer: known when predicting, so no label."""

    def evaluate_groups(self, split: str) -> Generator[Any, Tensor, dict[int, float]]:
        """As `evaluate`, but returns each group's own first figure."""


@runtime_checkable
class Voting(Protocol):
    """The task's predictions stand for decisions that can be counted."""

    def majority(self, predictions: Tensor) -> Tensor:
        """(members, batch, ...) to (batch, ...): what most members decide, in the space of predictions."""


def ability(task: Task[Any], wanted: type[Ability], needed_by: str) -> Ability:
    """The task, typed as having the ability; a task that lacks it is refused with the missing names."""
    if isinstance(task, wanted):
        return task
    names = [name for name in dir(wanted) if not name.startswith("_")] + list(wanted.__annotations__)
    missing = sorted({name for name in names if not hasattr(task, name)})
    raise UserError(
        f"{type(task).__name__} has no {', '.join(missing)}",
        f"a task that is {wanted.__name__}, which {needed_by} needs",
        f"add them as fewer.{wanted.__name__} describes (harm is now attack_loss, surface is now perturbable)",
    )


def perturbable_input(task: Attackable, batch: Any) -> Tensor:
    """What an adversary may change, of a task where it can be changed a little: whole numbers cannot."""
    perturbable = task.perturbable(batch)
    if perturbable.is_floating_point():
        return perturbable
    raise UserError(
        f"{type(task).__name__}, whose inputs are {str(perturbable.dtype).removeprefix('torch.')}",
        "floating-point inputs, which an attack can move a little along a gradient",
        "tokens can be neither attacked nor hardened; let quantities be floats",
    )
