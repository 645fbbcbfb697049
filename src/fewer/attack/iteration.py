"""How an attack runs: rounds of a coroutine, so that the same lines serve a captured graph and a dropping audit.

An attack yields its state after each round and goes on with what it is sent. A caller that sends the state back
unchanged has a pure function of (nets, batch, noise), which runs under vmap; one that sends back only the samples
still standing pays for those alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fewer.attack.attack_loss import AttackLoss, input_gradient
from fewer.attack.ball import Ball, Bounds, Budget, checked_budget, checked_norm
from fewer.attack.rough import confirmed
from fewer.core.abilities import Attackable, perturbable_input
from fewer.core.engines.nets import NetworkSet, frozen
from fewer.core.seed import Stream
from fewer.core.task import Noise

__all__ = ["Attack", "Rounds", "Rows", "State", "answered", "climb", "column", "judged", "pick", "top"]


@dataclass(frozen=True)
class Rows:
    """Noise whose every sample draws from its own stream, whoever else is in the batch.

    So an audit that drops samples sees the same numbers as one that does not.
    """

    seeds: Tensor  # (batch,), int64
    step: Tensor
    dtype: torch.dtype = torch.float32

    def _drawn(self, kind: str, name: str, shape: tuple[int, ...]) -> Tensor:
        if not shape or shape[0] != len(self.seeds):
            drawn: Tensor = getattr(Stream(torch.zeros_like(self.step), self.step, self.dtype), kind)(name, shape)
            return drawn

        def one(seed: Tensor) -> Tensor:
            row: Tensor = getattr(Stream(seed, self.step, self.dtype), kind)(name, shape[1:])
            return row

        return torch.func.vmap(one)(self.seeds)

    def uniform(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """In [0, 1)."""
        return self._drawn("uniform", name, shape)

    def normal(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Standard normal."""
        return self._drawn("normal", name, shape)

    def take(self, index: Tensor) -> Rows:
        """The streams of some samples."""
        return replace(self, seeds=self.seeds.index_select(0, index))


@dataclass(frozen=True)
class State:
    """Everything an attack carries from round to round; samples on axis 0 of all of it."""

    batch: Any  # as it was before the attack
    noise: Noise
    ball: Ball
    perturbable: Tensor  # the attack's answer so far
    fooled: Tensor  # (batch,): some visited point fooled the network
    memory: dict[str, Tensor] = field(default_factory=dict)  # what only this attack needs

    def take(self, index: Tensor) -> State:
        """The state of some samples."""
        return State(
            pytree.tree_map(lambda leaf: leaf.index_select(0, index), self.batch),
            self.noise.take(index) if isinstance(self.noise, Rows) else self.noise,
            self.ball.take(index),
            self.perturbable.index_select(0, index),
            self.fooled.index_select(0, index),
            {name: value.index_select(0, index) for name, value in self.memory.items()},
        )

    def noted(self, fooled: Tensor, perturbable: Tensor | None = None, **memory: Tensor) -> State:
        """After a round: newly fooled samples, a new answer, new memories."""
        return replace(
            self,
            fooled=self.fooled | fooled,
            perturbable=self.perturbable if perturbable is None else perturbable,
            memory={**self.memory, **memory},
        )


Rounds = Callable[[NetworkSet, State], Generator[State, State, State]]


@dataclass(frozen=True)
class Attack:
    """`attack(nets, batch, noise)` is the attacked batch; `rounds` is the same, one round at a time."""

    task: Attackable
    bounds: Bounds
    budget: Budget
    norm: float
    rounds: Rounds

    def __post_init__(self) -> None:
        checked_budget(self.budget), checked_norm(self.norm)

    def __call__(self, nets: NetworkSet, batch: Any, noise: Noise) -> Any:
        """The batch as the adversary would have it, cut off from the gradient of the weights."""
        return self.task.replace(batch, self.last(nets, batch, noise).perturbable)

    def begin(self, batch: Any, noise: Noise) -> State:
        """The state before the first round: nothing changed, nobody fooled."""
        ball = Ball.around(perturbable_input(self.task, batch).detach(), self.bounds, self.budget, self.norm)
        standing = torch.zeros_like(ball.centre.flatten(1)[:, 0], dtype=torch.bool)
        return State(batch, noise, ball, ball.centre, standing)

    def last(self, nets: NetworkSet, batch: Any, noise: Noise, visit: Callable[[State], None] | None = None) -> State:
        """The final state; `visit` is shown the state after each round."""
        with torch.no_grad(), _still(nets):
            running = self.rounds(frozen(nets), self.begin(batch, noise))
            state = next(running)
            while True:
                if visit is not None:
                    visit(state)
                try:
                    state = running.send(state)
                except StopIteration as stop:
                    final: State = stop.value
                    return final


@contextmanager
def _still(nets: NetworkSet) -> Iterator[None]:
    """No gradient of weights meanwhile: a compiled backward would compute it whether or not somebody asks."""
    own = nets.modules.values() if nets.state is None else ()  # lent weights belong to whoever lent them
    moved = [parameter for module in own for parameter in module.parameters() if parameter.requires_grad]
    for parameter in moved:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in moved:
            parameter.requires_grad_(True)


def climb(
    attack_loss: AttackLoss, nets: NetworkSet, task: Attackable, state: State, at: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradient, value and fooled of the attack_loss at a perturbable of this state's batch."""
    gradient, value, fooled = input_gradient(attack_loss, nets, lambda x: task.replace(state.batch, x), state.noise, at)
    return gradient, value, judged(nets, task, state, at, fooled)


def judged(nets: NetworkSet, task: Attackable, state: State, at: Tensor, fooled: Tensor) -> Tensor:
    """Who is fooled at a perturbable, once a rough classifier's word for it is confirmed; (batch,)."""
    return confirmed(task, nets, task.replace(state.batch, at), state.noise, fooled)


def column(per_sample: Tensor, like: Tensor) -> Tensor:
    """(batch,) shaped to multiply a perturbable."""
    return per_sample.reshape(-1, *[1] * (like.ndim - 1))


def pick(chosen: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Perturbable inputs of the chosen samples from `new`, of the others from `old`."""
    return torch.where(column(chosen, new), new, old)


def top(state: State, value: Tensor) -> Tensor:
    """The highest value of all visited points, which decides the answer while nobody is fooled."""
    return torch.maximum(state.memory["top"], value) if "top" in state.memory else value


def answered(state: State, fooled: Tensor, x: Tensor, value: Tensor) -> Tensor:
    """The answer after visiting x: the first point that fooled, or until then the one of highest value."""
    better = value > state.memory["top"] if "top" in state.memory else torch.ones_like(fooled)
    return pick(~state.fooled & (fooled | better), x, state.perturbable)
