"""Optimisers against torch's own, AdaBelief and the schedule against the formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fewer.core.engines import optimizer
from fewer.core.engines.optimizer import Optimizer
from fewer.core.errors import UserError

RULES: list[tuple[Optimizer, Callable[..., torch.optim.Optimizer], dict[str, Any]]] = [
    (Optimizer("adam", 1e-2), torch.optim.Adam, {"lr": 1e-2}),
    (
        Optimizer("adam", 1e-2, weight_decay=0.1, betas=(0.8, 0.95)),
        torch.optim.Adam,
        {"lr": 1e-2, "weight_decay": 0.1, "betas": (0.8, 0.95)},
    ),
    (Optimizer("adamw", 1e-2, weight_decay=0.1), torch.optim.AdamW, {"lr": 1e-2, "weight_decay": 0.1}),
    (Optimizer("sgd", 1e-2, momentum=0.0), torch.optim.SGD, {"lr": 1e-2}),
    (
        Optimizer("sgd", 1e-2, momentum=0.9, weight_decay=0.05),
        torch.optim.SGD,
        {"lr": 1e-2, "momentum": 0.9, "weight_decay": 0.05},
    ),
]


def slope(weights: Tensor, step: int) -> Tensor:
    """A gradient that depends on weights and step, so that mistakes do not cancel."""
    return torch.cos(3 * weights + step) + weights


def descend(settings: Optimizer, weights: Tensor, steps: int) -> Tensor:
    weights, state = weights.clone(), optimizer.start(settings, weights)
    for step in range(steps):
        now = torch.tensor(step)
        rate = optimizer.learning_rate(settings, now, steps)
        optimizer.update_(settings, weights, slope(weights, step), state, rate=rate, step=now)
    return weights


@pytest.mark.parametrize(("settings", "theirs", "options"), RULES, ids=lambda value: getattr(value, "kind", None))
def test_fifty_steps_end_where_torch_ends(settings: Optimizer, theirs: Any, options: dict[str, Any]) -> None:
    begin = torch.linspace(-2, 2, 12, dtype=torch.float64).view(3, 4)
    expected = begin.clone().requires_grad_(True)
    steps = theirs([expected], **options)
    for step in range(50):
        expected.grad = slope(expected.detach(), step)
        steps.step()
    assert torch.allclose(descend(settings, begin, 50), expected.detach(), rtol=0, atol=1e-12)


def test_adabelief_follows_its_paper() -> None:
    """Zhuang et al. 2020, algorithm 2: the square is of g - m, and epsilon is added inside and outside."""
    lr, beta1, beta2, epsilon, decay = 1e-2, 0.9, 0.999, 1e-8, 0.1
    w = torch.linspace(-2, 2, 12, dtype=torch.float64)
    begin, m, s = w.clone()[None], torch.zeros_like(w), torch.zeros_like(w)
    for step in range(50):
        g = slope(w, step)
        w = w * (1 - lr * decay)
        m = beta1 * m + (1 - beta1) * g
        s = beta2 * s + (1 - beta2) * (g - m) ** 2 + epsilon
        w = w - lr * (m / (1 - beta1 ** (step + 1))) / (torch.sqrt(s / (1 - beta2 ** (step + 1))) + epsilon)
    found = descend(Optimizer("adabelief", lr, weight_decay=decay), begin, 50)
    assert torch.allclose(found[0], w, rtol=0, atol=1e-12)


def test_a_learning_rate_per_replica_equals_as_many_optimisers() -> None:
    settings, rates = Optimizer("adam"), torch.tensor([[1e-2], [1e-3]], dtype=torch.float64)
    begin = torch.linspace(-1, 1, 6, dtype=torch.float64).view(2, 3)
    together, state = begin.clone(), optimizer.start(settings, begin)
    for step in range(10):
        optimizer.update_(settings, together, slope(together, step), state, rate=rates, step=torch.tensor(step))
    for row, rate in enumerate((1e-2, 1e-3)):
        assert torch.allclose(descend(Optimizer("adam", rate), begin[row], 10), together[row], atol=1e-14)


def test_the_schedule_rises_linearly_stays_and_falls_by_a_cosine() -> None:
    settings = Optimizer(lr=0.1, warmup=4, decay_from=0.5)
    rates = [float(optimizer.learning_rate(settings, torch.tensor(step), 20)) for step in range(20)]
    assert rates[:4] == pytest.approx([0.025, 0.05, 0.075, 0.1])
    assert rates[4:11] == pytest.approx([0.1] * 7)
    assert rates[11:] == pytest.approx([0.05 * (1 + math.cos(math.pi * (step - 10) / 10)) for step in range(11, 20)])


def test_without_options_the_rate_is_constant() -> None:
    assert {float(optimizer.learning_rate(Optimizer(lr=0.3), torch.tensor(s), 5)) for s in range(9)} == {0.3}


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "adagrad"}, {"lr": 0.0}, {"lr": float("nan")}, {"lr": float("inf")}, {"weight_decay": -1.0},
        {"clip": -1.0}, {"clip": float("nan")}, {"decay_from": 1.5}, {"betas": (0.9,)}, {"betas": (0.9, 1.0)},
        {"betas": (-0.1, 0.9)}, {"momentum": float("nan")}, {"momentum": -0.5}, {"epsilon": 0.0}, {"warmup": -3},
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused_at_construction(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="expected"):
        Optimizer(**options)
