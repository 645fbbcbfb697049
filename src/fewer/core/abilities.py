"""Optional abilities of a task: what a method may ask for beyond the contract, and nothing more.

A method that needs one says so with `ability`, which refuses a task that lacks it in one clear line.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.core.task import Copy, Data, Inputs, Nets, Noise, Objective, Task

__all__ = [
    "Annotated",
    "Attackable",
    "Classifier",
    "Featured",
    "Grouped",
    "Spare",
    "Together",
    "Variant",
    "Voting",
    "ability",
    "kind_of",
    "perturbable_input",
]

Ability = TypeVar("Ability")


@runtime_checkable
class Annotated(Protocol):
    """The task can say what its inputs are, for whoever uses a pack on files of their own."""

    def about(self) -> Mapping[str, Any]:
        """Numbers, words and lists of them; empty if there is nothing to say."""


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
        """As `evaluate`, but returns each group's own first metric."""


@runtime_checkable
class Voting(Protocol):
    """The task's predictions stand for decisions that can be counted."""

    def majority(self, predictions: Tensor) -> Tensor:
        """(members, batch, ...) to (batch, ...): what most members decide, in the space of predictions."""


_ABILITIES = (Attackable, Classifier, Featured, Spare, Together, Grouped, Voting)


class Variant(Task[Any]):
    """A task that asks another one: what it does not answer itself, abilities included, is the other's answer.

    The other is a shallow copy: an engine moves the constants of the task it is given, the copy's losses see them
    moved, and the task that was given here stays where it was.
    """

    def __init__(self, task: Task[Any]) -> None:
        self.task = copy.copy(task)
        self.whole, self.only, self.recommended = task.whole, task.only, task.recommended
        for wanted in _ABILITIES:
            if isinstance(self.task, wanted):
                for name in _members(wanted):  # as attributes: a runtime protocol does not look into __getattr__
                    setattr(self, name, getattr(self.task, name))

    @property
    def constants(self) -> Mapping[str, Tensor]:  # type: ignore[override]
        """Those of the task that is asked."""
        return self.task.constants

    @constants.setter
    def constants(self, found: Mapping[str, Tensor]) -> None:
        self.task.constants = found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "task":  # while it is being copied there is nobody to ask
            raise AttributeError(name)
        return getattr(self.task, name)

    def networks(self) -> dict[str, nn.Module]:
        return self.task.networks()

    def objectives(self) -> tuple[Objective[Any], ...]:
        return self.task.objectives()

    def data(self, split: str) -> Data[Any]:
        return self.task.data(split)

    def inputs(self, batch: Any) -> Inputs:
        return self.task.inputs(batch)

    def predict(self, nets: Nets, inputs: Inputs, noise: Noise) -> Tensor:
        return self.task.predict(nets, inputs, noise)

    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        return self.task.evaluate(split)

    def copies(self) -> dict[str, Copy]:
        return self.task.copies()

    def same_mask(self) -> dict[str, str]:
        return self.task.same_mask()


def kind_of(task: Task[Any]) -> str:
    """The name of a task's class; of a variant that of the task it asks in the end."""
    return kind_of(task.task) if isinstance(task, Variant) else type(task).__name__


def _members(wanted: type[Any]) -> list[str]:
    return [name for name in dir(wanted) if not name.startswith("_")] + list(wanted.__annotations__)


def ability(task: Task[Any], wanted: type[Ability], needed_by: str) -> Ability:
    """The task, typed as having the ability; a task that lacks it is refused with the missing names."""
    if isinstance(task, wanted):
        return task
    missing = sorted({name for name in _members(wanted) if not hasattr(task, name)})
    raise UserError(
        f"{kind_of(task)} has no {', '.join(missing)}",
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
        "let quantities be floats; tokens are attacked behind a torch.nn.Embedding",
    )
