"""Clipping by value, and AdaBelief as its library steps by default."""

from __future__ import annotations

import math

import pytest
import torch

from fewer.core.engines import optimizer
from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from tests.toys import Fit


def test_a_rectified_adabelief_takes_plain_steps_first_and_radams_factor_after() -> None:
    settings = Optimizer("adabelief", 1e-2, epsilon=1e-16, rectify=True)
    weights, state = torch.tensor([[0.7]], dtype=torch.float64), optimizer.start(settings, torch.zeros(1, 1).double())
    w, m, s, longest = 0.7, 0.0, 0.0, 2 / (1 - 0.999) - 1
    divided = []
    for t in range(1, 13):
        g = math.cos(3 * w + t)
        m = 0.9 * m + 0.1 * g
        s = 0.999 * s + 0.001 * (g - m) ** 2 + 1e-16
        length = longest - 2 * t * 0.999**t / (1 - 0.999**t)
        divided.append(length >= 5)
        step = m / (1 - 0.9**t)
        if length >= 5:
            share = (length - 4) / (longest - 4) * (length - 2) / length * longest / (longest - 2)
            step *= math.sqrt((1 - 0.999**t) * share) / (math.sqrt(s) + 1e-16)
        now, gradient = torch.tensor(t - 1), torch.cos(3 * weights + t)
        optimizer.update_(settings, weights, gradient, state, rate=torch.tensor(1e-2), step=now)
        w -= 1e-2 * step
        assert float(weights) == pytest.approx(w, rel=1e-6)
    assert divided == [False] * 5 + [True] * 7


def test_no_number_of_a_gradient_passes_the_clip() -> None:
    """Plain descent without momentum: a weight moves by rate times gradient, at most rate times clip."""
    settings = Optimizer("sgd", lr=1.0, momentum=0.0, clip_value=1e-3)
    engine = Plain(Fit(), Training(steps=1, batch=10, precision="float64", optimizer=settings), 0)
    before = engine.state.networks["net"].weights.clone()
    engine.advance(1)
    moved = (engine.state.networks["net"].weights - before).abs()
    assert float(moved.max()) == pytest.approx(1e-3)
    assert 0 < int((moved < 0.9e-3).sum()) < moved.numel()


def test_a_negative_clip_is_refused() -> None:
    with pytest.raises(UserError, match="clip_value"):
        Optimizer(clip_value=-1.0)
