"""Auto-PGD (Croce and Hein 2020): PGD with momentum that chooses its own step, per sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

import torch
from torch import Tensor

from fewer.attack import attack_loss as attack_losses
from fewer.attack.attack_loss import AttackLoss
from fewer.attack.attacks.targets import count_targets, ratio, targets_of
from fewer.attack.ball import Ball, Bounds, Budget, lengths
from fewer.attack.iteration import Attack, State, answered, climb, column, pick, top
from fewer.core.abilities import Attackable, ability
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.task import Task

__all__ = ["apgd", "apgd_targeted", "checkpoints"]

MOMENTUM = 0.75
RHO = 0.75  # share of rising steps below which the step is too long
Search = Callable[[State], AttackLoss]


def checkpoints(steps: int) -> list[int]:
    """Steps after which the step length is reconsidered: ceil(p_j * steps), p = 0.22, then closer and closer."""
    places, marks = [0.0, 0.22], [0]
    while places[-1] <= 1:
        # rounding keeps 0.22 * 100 from becoming 23
        marks.append(math.ceil(round(places[-1] * steps, 9)))
        places.append(places[-1] + max(places[-1] - places[-2] - 0.03, 0.06))
    return sorted(set(marks[1:]))


def apgd(
    task: Task[Any],
    budget: Budget,
    *,
    steps: int = 100,
    restarts: int = 1,
    norm: float = math.inf,
    attack_loss: AttackLoss | None = None,
) -> Attack:
    """APGD; by default it increases the cross-entropy (APGD-CE), or the attack loss of a task without classes."""
    attackable = _checked(task, steps, restarts)
    goal = attack_loss or attack_losses.natural(task)

    def rounds(nets: NetworkSet, state: State) -> Generator[State, State, State]:
        for restart in range(restarts):
            state = yield from _search(nets, state, lambda _: goal, steps, f"attack/apgd/{restart}", attackable)
        return state

    return Attack(attackable, Bounds(attackable), budget, norm, rounds)


def apgd_targeted(
    task: Task[Any], budget: Budget, *, steps: int = 100, targets: int = 9, norm: float = math.inf
) -> Attack:
    """APGD on the targeted difference-of-logits ratio, towards each of the likeliest wrong classes in turn."""
    attackable = _checked(task, steps, targets)
    both = attack_losses.logits_and_labels(task, "targeted APGD")

    def rounds(nets: NetworkSet, state: State) -> Generator[State, State, State]:
        logits, labels = both(nets, state.batch, state.noise)
        state = state.noted(state.fooled, targets=targets_of(logits, labels, targets))
        for index in range(count_targets(logits, targets)):

            def goal(now: State, index: int = index) -> AttackLoss:
                return ratio(both, now.memory["targets"][:, index])

            state = yield from _search(nets, state, goal, steps, f"attack/apgd-t/{index}", attackable)
        return state

    return Attack(attackable, Bounds(attackable), budget, norm, rounds)


def _checked(task: Task[Any], steps: int, restarts: int) -> Attackable:
    if steps < 1 or restarts < 1:
        raise UserError(f"APGD with {steps} steps and {restarts} restarts or targets", "at least 1 of each")
    return ability(task, Attackable, "APGD")


def _edge(ball: Ball, state: State, name: str) -> Tensor:
    """A random start on the edge of the ball."""
    shape = tuple(ball.centre.shape)
    drawn = state.noise.uniform(name, shape) * 2 - 1 if ball.norm == math.inf else state.noise.normal(name, shape)
    drawn = drawn.to(ball.centre.dtype)
    return ball.project(ball.centre + ball.budget * drawn / lengths(drawn, ball.norm).clamp(min=1e-12))


def _search(
    nets: NetworkSet, state: State, goal: Search, steps: int, name: str, task: Attackable
) -> Generator[State, State, State]:
    """Algorithm 1 of the paper, from one random start; `best` is x_max, `value` f(x), `step` eta."""
    x = _edge(state.ball, state, name)
    gradient, value, fooled = climb(goal(state), nets, task, state, x)
    state = state.noted(
        fooled,
        answered(state, fooled, x, value),
        x=x, before=x, gradient=gradient, value=value, best=x, best_slope=gradient, best_value=value,
        step=torch.full_like(value, 2.0) * state.ball.budget,
        rises=torch.zeros_like(value), mark_value=value, halved=torch.ones_like(fooled), top=top(state, value),
    )  # fmt: skip
    state = yield state
    marks = [0, *checkpoints(steps)]
    for count in range(1, steps + 1):
        memory, ball = state.memory, state.ball
        x, share = memory["x"], MOMENTUM if count > 1 else 1.0
        z = ball.project(x + column(memory["step"], x) * ball.steepest(memory["gradient"]))
        moved = ball.project(x + share * (z - x) + (1 - share) * (x - memory["before"]))
        gradient, value, fooled = climb(goal(state), nets, task, state, moved)
        state = _improved(state, moved, gradient, value, fooled)
        if count in marks[1:]:
            state = _reconsidered(state, count - marks[marks.index(count) - 1])
        state = yield state
    return state


def _improved(state: State, x: Tensor, gradient: Tensor, value: Tensor, fooled: Tensor) -> State:
    """After a step: x_max, f_max and the number of rising steps."""
    memory = state.memory
    better = value > memory["best_value"]
    return state.noted(
        fooled,
        answered(state, fooled, x, value),
        x=x,
        before=memory["x"],
        gradient=gradient,
        value=value,
        rises=memory["rises"] + (value > memory["value"]),
        best=pick(better, x, memory["best"]),
        best_slope=pick(better, gradient, memory["best_slope"]),
        best_value=torch.where(better, value, memory["best_value"]),
        top=top(state, value),
    )


def _reconsidered(state: State, span: int) -> State:
    """At a checkpoint: halve the step and go back to x_max where few steps rose, or where nothing was gained."""
    memory = state.memory
    few = memory["rises"] < RHO * span
    stuck = ~memory["halved"] & (memory["best_value"] <= memory["mark_value"])
    halve = few | stuck
    return state.noted(
        state.fooled,
        step=torch.where(halve, memory["step"] / 2, memory["step"]),
        x=pick(halve, memory["best"], memory["x"]),
        gradient=pick(halve, memory["best_slope"], memory["gradient"]),
        value=torch.where(halve, memory["best_value"], memory["value"]),
        rises=torch.zeros_like(memory["rises"]),
        mark_value=memory["best_value"],
        halved=halve,
    )
