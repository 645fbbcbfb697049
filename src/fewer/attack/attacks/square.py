"""The Square attack (Andriushchenko et al. 2020): random search in squares, without gradients.

A network that hides its gradients stands against every attack that needs them, and falls to this one.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import torch
from torch import Tensor

from fewer.attack import attack_loss as attack_losses
from fewer.attack.attacks.bumps import as_image, first_bumps, moved_bump, odd_side
from fewer.attack.attacks.starts import stripes
from fewer.attack.ball import Bounds, Budget
from fewer.attack.iteration import Attack, State, answered, judged, top
from fewer.core.abilities import Attackable, Classifier, ability
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.task import Task

__all__ = ["share_at", "square"]

FIRST_SHARE = 0.8  # of the input, changed by the first square
_HALVINGS = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)  # queries of 10,000 after which the share halves


def share_at(query: int, queries: int) -> float:
    """Share of the input that a query changes: it halves on the paper's schedule, stretched to this many queries."""
    scaled = query * 10_000 // queries
    return FIRST_SHARE / float(1 << sum(scaled > mark for mark in _HALVINGS))


def square(task: Task[Any], budget: Budget, *, queries: int = 5000, norm: float = math.inf) -> Attack:
    """Square. Images are (batch, channels, height, width); any other perturbable is a row, its squares intervals."""
    if queries < 1:
        raise UserError(f"Square with {queries} queries", "at least 1")
    attackable = ability(task, Attackable, "Square")
    # without classes there is no margin: the search then increases the task's attack loss
    goal = attack_losses.margin(task) if isinstance(task, Classifier) else attack_losses.own(task)

    def rounds(nets: NetworkSet, state: State) -> Generator[State, State, State]:
        begun = "attack/square/first"
        ball = state.ball
        first = stripes(ball, state.noise, begun) if norm == math.inf else ball.centre + first_bumps(state, begun)
        state = yield looked(nets, state, state.ball.project(first))
        for query in range(1, queries):
            share, name = share_at(query, queries), f"attack/square/{query}"
            _, _, height, width = as_image(state.perturbable).shape
            if norm == math.inf:
                candidate = state.perturbable + _square(state, name, share)
            else:
                candidate = moved_bump(state, name, odd_side(share, height, width))
            state = yield looked(nets, state, state.ball.project(candidate))
        return state

    def looked(nets: NetworkSet, state: State, x: Tensor) -> State:
        """Keep x where it is better than the best so far."""
        value, fooled = goal(nets, attackable.replace(state.batch, x), state.noise)
        fooled = judged(nets, attackable, state, x, fooled)
        return state.noted(fooled, answered(state, fooled, x, value), top=top(state, value))

    return Attack(attackable, Bounds(attackable), budget, norm, rounds)


def _square(state: State, name: str, share: float) -> Tensor:
    """Plus or minus two budgets per channel inside one square per sample, zero outside."""
    batch, channels, height, width = as_image(state.perturbable).shape
    side = round(math.sqrt(share * height * width)) if height > 1 else round(share * width)
    tall, wide = (min(max(side, 1), size) for size in (height, width))
    drawn = state.noise.uniform(name, (batch, channels + 2)).to(state.perturbable.dtype)
    rows = torch.arange(height, device=drawn.device)[None, :, None]
    columns = torch.arange(width, device=drawn.device)[None, None, :]
    top = (drawn[:, 0] * (height - tall + 1)).floor()[:, None, None]
    left = (drawn[:, 1] * (width - wide + 1)).floor()[:, None, None]
    inside = (rows >= top) & (rows < top + tall) & (columns >= left) & (columns < left + wide)
    signs = torch.where(drawn[:, 2:, None, None] < 0.5, -2.0, 2.0).to(state.perturbable.dtype)
    return (signs * inside[:, None] * state.ball.budget).reshape(state.perturbable.shape)
