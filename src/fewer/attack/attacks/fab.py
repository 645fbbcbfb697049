"""Targeted FAB (Croce and Hein 2020): the fast adaptive boundary attack, which looks for the nearest way out.

It does not climb within a budget; it walks along the decision boundary, linearised at each point, towards the clean
input, and a sample is fooled when the way out found is no longer than the budget.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import torch
from torch import Tensor

from fewer.attack import attack_loss as attack_losses
from fewer.attack.attacks.targets import count_targets, lead, targets_of
from fewer.attack.ball import Bounds, Budget, lengths
from fewer.attack.iteration import Attack, State, column, judged, pick
from fewer.core.abilities import Attackable, ability
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.task import Task

__all__ = ["fab_targeted", "to_hyperplane"]

OVERSHOOT = 1.05  # eta: steps end a little beyond the linearised boundary
TOWARDS_CLEAN = 0.1  # alpha_max: largest weight of the clean input in a step
BACKWARD = 0.9  # beta: after a success, go back this far towards the clean input
FINAL_STEPS = 3


def to_hyperplane(x: Tensor, w: Tensor, gap: Tensor, low: Tensor, high: Tensor, norm: float) -> Tensor:
    """Shortest offset d with w.d = -gap and low <= x + d <= high, samples on axis 0; the farthest if none suffices.

    Moving every coordinate by min(t * unit, room) closes a gap that grows piecewise linearly with t, so sorting the
    places where a coordinate hits its bound gives t exactly.
    """
    shape = x.shape
    x, w = x.flatten(1), w.flatten(1)
    low, high = low.expand(shape).flatten(1), high.expand(shape).flatten(1)
    sense = -gap.sign()[:, None] * w.sign()
    room = torch.where(sense > 0, high - x, x - low) * sense.abs()
    unit = torch.ones_like(w) if norm == math.inf else w.abs()
    end, order = (room / unit.clamp(min=1e-20)).sort(1)  # t at which each coordinate is used up
    rate = (w.abs() * unit).gather(1, order)
    used = (rate * end).cumsum(1)
    left = (rate.sum(1, keepdim=True) - rate.cumsum(1)).clamp(min=0.0)
    closed = used + end * left
    first = (closed < gap.abs()[:, None]).sum(1, keepdim=True).clamp(max=x.shape[1] - 1)
    spent = used.gather(1, first) - (rate * end).gather(1, first)
    t = (gap.abs()[:, None] - spent) / (left + rate).gather(1, first).clamp(min=1e-20)
    return (sense * torch.minimum(t.clamp(min=0.0) * unit, room)).reshape(shape)


def fab_targeted(
    task: Task[Any], budget: Budget, *, steps: int = 100, targets: int = 9, norm: float = math.inf
) -> Attack:
    """FAB towards each of the likeliest wrong classes in turn, from the clean input, without random starts."""
    if steps < 1 or targets < 1:
        raise UserError(f"FAB with {steps} steps and {targets} targets", "at least 1 of each")
    attackable = ability(task, Attackable, "FAB")
    both, bounds = attack_losses.logits_and_labels(task, "FAB"), Bounds(attackable)
    margin = attack_losses.margin(task)

    def rounds(nets: NetworkSet, state: State) -> Generator[State, State, State]:
        logits, labels = both(nets, state.batch, state.noise)
        far = torch.full_like(logits[:, 0], torch.inf)
        already = judged(nets, attackable, state, state.ball.centre, attack_losses.wrong(logits, labels))
        state = state.noted(already, targets=targets_of(logits, labels, targets), nearest=far, found=state.ball.centre)
        for index in range(count_targets(logits, targets)):
            state = state.noted(state.fooled, x=state.ball.centre)
            for _ in range(steps):
                state = yield walked(nets, state, index)
        for _ in range(FINAL_STEPS):
            state = yield shortened(nets, state)
        return state

    def walked(nets: NetworkSet, state: State, index: int) -> State:
        """One step towards the boundary with this target, drawn a little towards the clean input."""
        x, ball = state.memory["x"], state.ball
        gap_aim = lead(both, state.memory["targets"][:, index])
        w, gap, _ = attack_losses.input_gradient(
            gap_aim, nets, lambda at: attackable.replace(state.batch, at), state.noise, x
        )
        low, high = bounds.like(x)
        own = to_hyperplane(x, w, gap, low, high, norm)
        there = gap + (w * (ball.centre - x)).flatten(1).sum(1)
        clean = to_hyperplane(ball.centre, w, there, low, high, norm)
        length, clean_length = lengths(own, norm), lengths(clean, norm)
        alpha = (length / (length + clean_length).clamp(min=1e-12)).clamp(max=TOWARDS_CLEAN)
        moved = (1 - alpha) * (x + OVERSHOOT * own) + alpha * (ball.centre + OVERSHOOT * clean)
        return looked(nets, state, torch.clamp(moved, low, high))

    def looked(nets: NetworkSet, state: State, x: Tensor) -> State:
        """Note whether x is a way out, a nearer one, a near enough one; if it is, go back towards the clean input."""
        _, out = margin(nets, attackable.replace(state.batch, x), state.noise)
        ball, memory = state.ball, state.memory
        distance = lengths(x - ball.centre, norm).flatten()
        nearer = out & (distance < memory["nearest"])
        fooled = judged(nets, attackable, state, x, out & (distance <= ball.budget))
        back = (1 - BACKWARD) * ball.centre + BACKWARD * x
        return state.noted(
            fooled,
            pick(fooled & ~state.fooled, x, state.perturbable),
            nearest=torch.where(nearer, distance, memory["nearest"]),
            found=pick(nearer, x, memory["found"]),
            x=pick(out, back, x),
        )

    def shortened(nets: NetworkSet, state: State) -> State:
        """Final search: cut the way out where a straight line between the margins at its ends crosses zero."""
        centre, found = state.ball.centre, state.memory["found"]
        at_clean, _ = margin(nets, state.batch, state.noise)
        at_found, _ = margin(nets, attackable.replace(state.batch, found), state.noise)
        share = (-at_clean / (at_found - at_clean).clamp(min=1e-12)).clamp(0.0, 1.0)
        return looked(nets, state, centre + column(share, found) * (found - centre))

    return Attack(attackable, bounds, budget, norm, rounds)
