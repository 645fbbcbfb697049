"""Optimisers as rules on flat weights: one tensor a network, one row a replica.

Elementwise rules on (replicas, weights) tensors equal as many separate optimisers, also with a learning rate or a
decay per replica. Settings are data; the state is a dict of tensors that a run can save.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fewer.core.engines import OPTIMIZERS
from fewer.core.errors import UserError

__all__ = ["Optimizer", "State", "learning_rate", "start", "update_"]

State = dict[str, Tensor]


@dataclass(frozen=True)
class Optimizer:
    """What an objective descends with."""

    kind: str = "adam"  # adam, adamw (decoupled decay), adabelief (decoupled decay) or sgd
    lr: float = 1e-3
    momentum: float = 0.9  # sgd only
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    clip: float = 0.0  # largest gradient norm over all the objective's networks, per replica; 0: none
    clip_value: float = 0.0  # largest absolute value of a gradient's numbers; 0: none
    rectify: bool = False  # adabelief only: RAdam's factor on the step, no division while the variance is unknown
    warmup: int = 0  # steps of linear rise from zero
    decay_from: float = 1.0  # share of the run after which the rate falls to zero by a cosine; 1: never

    def __post_init__(self) -> None:
        if self.kind not in OPTIMIZERS:
            raise UserError(f"optimizer {self.kind!r}", f"one of {', '.join(OPTIMIZERS)}")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise UserError(f"optimizer betas {self.betas}", "two numbers from 0 to below 1")
        for name, value, fine, expected in (
            ("lr", self.lr, self.lr > 0, "above 0"),
            ("momentum", self.momentum, 0 <= self.momentum < 1, "from 0 to below 1"),
            ("epsilon", self.epsilon, self.epsilon > 0, "above 0"),
            ("weight_decay", self.weight_decay, self.weight_decay >= 0, "of at least 0"),
            ("clip", self.clip, self.clip >= 0, "of at least 0"),
            ("clip_value", self.clip_value, self.clip_value >= 0, "of at least 0"),
            ("warmup", self.warmup, self.warmup >= 0, "of at least 0"),
            ("decay_from", self.decay_from, 0 <= self.decay_from <= 1, "from 0 to 1"),
        ):
            if not fine or not math.isfinite(value):
                raise UserError(f"optimizer {name} {value}", f"a finite number {expected}")


def start(settings: Optimizer, weights: Tensor) -> State:
    """The state before the first step."""
    names = {"sgd": ("momentum",)}.get(settings.kind, ("mean", "square"))
    return {name: torch.zeros_like(weights) for name in names}


def learning_rate(settings: Optimizer, step: Tensor, total: int) -> Tensor:
    """The rate at a step counted from 0, as a tensor, so that a captured graph follows the schedule.

    >>> [round(float(learning_rate(Optimizer(lr=1.0, warmup=4), torch.tensor(step), 100)), 2) for step in (0, 1, 3, 9)]
    [0.25, 0.5, 1.0, 1.0]
    """
    position = step.to(torch.float64)
    rate = torch.full_like(position, settings.lr)
    if settings.warmup:
        rate = rate * ((position + 1) / settings.warmup).clamp(max=1.0)
    if settings.decay_from < 1:
        begin = settings.decay_from * total
        progress = ((position - begin) / max(total - begin, 1.0)).clamp(0.0, 1.0)
        rate = rate * (0.5 + 0.5 * torch.cos(math.pi * progress))
    return rate


@torch.no_grad()
def update_(
    settings: Optimizer, weights: Tensor, gradient: Tensor, state: State, *, rate: Tensor, step: Tensor
) -> None:
    """One step on (replicas, weights); `rate` is a scalar or (replicas, 1), `step` counts from 0."""
    rate = rate.to(weights.dtype)
    decay = settings.weight_decay
    if settings.kind == "sgd":
        if decay:
            gradient = gradient.add(weights, alpha=decay)
        # torch's convention: the first gradient enters the momentum whole, which zeros give as well
        momentum = state["momentum"].mul_(settings.momentum).add_(gradient)
        weights.sub_(rate * momentum)
        return
    beta1, beta2 = settings.betas
    mean, square = state["mean"], state["square"]
    # CUDA's fused form takes a rate in single precision alone
    double = weights.is_cuda and weights.dtype == torch.float64
    if settings.kind != "adabelief" and rate.ndim == 0 and not double:
        fused = torch._fused_adam_ if settings.kind == "adam" else torch._fused_adamw_  # one pass over memory
        fused(
            [weights], [gradient], [mean], [square], [], [(step + 1).to(torch.float32)], lr=rate, beta1=beta1,
            beta2=beta2, weight_decay=decay, eps=settings.epsilon, amsgrad=False, maximize=False,
        )  # fmt: skip
        return
    if decay and settings.kind == "adam":
        gradient = gradient.add(weights, alpha=decay)
    elif decay:
        weights.mul_(1 - rate * decay)
    mean.lerp_(gradient, 1 - beta1)
    spread = gradient - mean if settings.kind == "adabelief" else gradient
    square.mul_(beta2).addcmul_(spread, spread, value=1 - beta2)
    if settings.kind == "adabelief":
        square.add_(settings.epsilon)
    count = step.to(torch.float64) + 1
    bias1 = (1 - beta1**count).to(weights.dtype)
    bias2 = (1 - beta2**count).sqrt().to(weights.dtype)
    if settings.rectify and settings.kind == "adabelief":
        weights.sub_((rate / bias1) * _rectified(mean, square.sqrt() + settings.epsilon, beta2, count))
        return
    weights.sub_((rate / bias1) * mean / (square.sqrt() / bias2 + settings.epsilon))


def _rectified(mean: Tensor, deviation: Tensor, beta2: float, count: Tensor) -> Tensor:
    """The direction of RAdam (Liu et al., 2020): r m / d, or m alone in the first steps, where r is not defined."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * count * beta2**count / (1 - beta2**count)
    share = (length - 4) / (longest - 4) * (length - 2) / length * longest / (longest - 2)
    factor = ((1 - beta2**count) * share.clamp(min=0)).sqrt().to(mean.dtype)
    return torch.where(length >= 5, factor * mean / deviation, mean)
