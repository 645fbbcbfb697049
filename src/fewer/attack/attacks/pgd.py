"""Projected gradient descent (Madry et al. 2018) in the L-inf and L2 balls."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fewer.attack import attack_loss as attack_losses
from fewer.attack.attack_loss import AttackLoss
from fewer.attack.attacks.starts import STARTS
from fewer.attack.ball import Bounds, Budget, checked_budget, checked_norm
from fewer.attack.iteration import Attack, State, climb, judged, pick
from fewer.core.abilities import Attackable, ability
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.task import Task

__all__ = ["PGDSettings", "ascent", "default_step", "pgd", "pgd_on_margin"]


@dataclass(frozen=True)
class PGDSettings:
    """How far, how often and from where (a name in `STARTS`); with `last`, steps fall evenly from `step` to it."""

    budget: Budget
    steps: int
    step: Budget
    restarts: int = 1
    norm: float = math.inf
    start: str = "uniform"
    last: Budget | None = None

    def __post_init__(self) -> None:
        checked_budget(self.budget), checked_budget(self.step, "step"), checked_norm(self.norm)
        if self.last is not None:
            checked_budget(self.last, "last step")
        if self.steps < 1 or self.restarts < 1:
            raise UserError(f"PGD with {self.steps} steps and {self.restarts} restarts", "at least 1 of each")
        if self.start not in STARTS:
            raise UserError(f"PGD start {self.start!r}", f"one of {', '.join(STARTS)}")

    def lengths(self, dtype: torch.dtype) -> list[Budget]:
        """Of every step, in order."""
        step = _as(self.step, dtype)
        if self.last is None or self.steps == 1:
            return [step] * self.steps
        fall = (_as(self.last, dtype) - step) / (self.steps - 1)
        return [step + fall * index for index in range(self.steps)]


def _as(length: Budget, dtype: torch.dtype) -> Budget:
    return length.to(dtype) if isinstance(length, Tensor) else length


def default_step(budget: Budget, steps: int) -> Budget:
    """A thirtieth of the budget, as published (0.01 at 0.3), or as much as lets few steps reach as far as its 40 do."""
    return budget * max(1 / 30, 4 / 3 / max(steps, 1))


def pgd(
    task: Task[Any],
    budget: Budget,
    *,
    steps: int = 40,
    step: Budget | None = None,
    restarts: int = 1,
    norm: float = math.inf,
    start: str = "uniform",
    last: Budget | None = None,
    attack_loss: AttackLoss | None = None,
) -> Attack:
    """x <- project(x + step * steepest(gradient)), `steps` times; of several restarts the worst per sample.

    `start` is a name in `starts.STARTS`: `uniform` is anywhere in the ball, `centre` the clean input.
    With `last`, steps fall evenly from `step` to it: a few long and then short ones find what many equal ones miss.
    Without an attack loss, the task's own attack loss is increased.
    """
    attackable = ability(task, Attackable, "PGD")
    stride = default_step(checked_budget(budget), steps) if step is None else step
    path = PGDSettings(budget, steps, stride, restarts, norm, start, last)
    return ascent(attackable, Bounds(attackable), path, attack_loss or attack_losses.own(task))


def pgd_on_margin(
    task: Task[Any], budget: Budget, *, steps: int = 50, restarts: int = 1, norm: float = math.inf
) -> Attack:
    """PGD that increases the best wrong score less the label's: steps fall evenly from a quarter of the budget to none.

    Cross-entropy rises longest where a network is sure; the margin is what decides (Carlini and Wagner 2017).
    """
    quarter = budget / 4
    return pgd(
        task, budget, steps=steps, step=quarter, last=quarter / steps, restarts=restarts, norm=norm,
        attack_loss=attack_losses.margin(task),
    )  # fmt: skip


def ascent(task: Attackable, bounds: Bounds, path: PGDSettings, attack_loss: AttackLoss) -> Attack:
    """PGD from its parts, all checked before: what a training step calls with its own budget."""

    def rounds(nets: NetworkSet, state: State) -> Generator[State, State, State]:
        lengths = path.lengths(state.perturbable.dtype)
        for restart in range(path.restarts):
            begun = STARTS[path.start](state.ball, state.noise, f"attack/start/{restart}")
            state = state.noted(state.fooled, x=begun)
            for step in lengths:
                x, ball = state.memory["x"], state.ball
                gradient, _, fooled = climb(attack_loss, nets, task, state, x)
                state = yield state.noted(fooled, x=ball.project(x + step * ball.steepest(gradient)))
            x = state.memory["x"]
            state = state.noted(state.fooled, x) if path.restarts == 1 else kept(nets, state, x)
        return state

    def kept(nets: NetworkSet, state: State, x: Tensor) -> State:
        """The worse of the restarts so far and this one."""
        value, fooled = attack_loss(nets, task.replace(state.batch, x), state.noise)
        fooled = judged(nets, task, state, x, fooled)
        if "worst" not in state.memory:
            return state.noted(fooled, x, worst=value)
        worse = value > state.memory["worst"]
        return state.noted(
            fooled, pick(worse, x, state.perturbable), worst=torch.where(worse, value, state.memory["worst"])
        )

    return Attack(task, bounds, path.budget, path.norm, rounds)
