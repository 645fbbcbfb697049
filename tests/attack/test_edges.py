"""Ties, shortest gradients and thresholds of attacks, at the very value where the answer changes."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.attack import layout as layout_module
from fewer.attack.attacks import apgd
from fewer.attack.ball import Ball, Bounds
from fewer.attack.hardening.detectors import overfitting
from fewer.attack.iteration import State
from fewer.attack.text import split_text
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError

from .examples import stream


class Plane:
    bounds = torch.full((), -9.0), torch.full((), 9.0)


def ball(count: int, norm: float, size: int = 2) -> Ball:
    return Ball.around(torch.zeros(count, size, dtype=torch.float64), Bounds(Plane()), 1.0, norm)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "share"), [(1, 1 / 2), (2, 1 / 4), (3, 1 / 8)])
def test_points_of_a_round_ball_are_drawn_evenly_from_its_inside(size: int, share: float) -> None:
    drawn = ball(4000, 2.0, size).random(stream(), "start")
    length = drawn.square().sum(1).sqrt()
    assert length.max() <= 1 + 1e-9
    assert float((length < 0.5).double().mean()) == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("length", [1.0, 1e-6, 1.2e-12])
def test_the_steepest_direction_of_however_short_a_gradient_has_unit_length(length: float) -> None:
    gradient = torch.tensor([[0.6, -0.8]], dtype=torch.float64) * length
    assert torch.allclose(ball(1, 2.0).steepest(gradient), gradient / length)
    assert torch.equal(ball(1, 2.0).steepest(gradient * 0), gradient * 0)


def test_of_points_of_equal_loss_the_first_stays_the_best() -> None:
    start = torch.zeros(2, 2, dtype=torch.float64)
    one = torch.ones(2, dtype=torch.float64)
    fooled = torch.zeros(2, dtype=torch.bool)
    memory = {
        "x": start, "before": start, "gradient": start, "value": one, "best": start, "best_slope": start,
        "best_value": one, "rises": one * 0, "mark_value": one, "top": one,
    }  # fmt: skip
    state = State(None, stream(), ball(2, math.inf), start, fooled, memory)
    found = apgd._improved(state, start + 1, start, torch.tensor([1.0, 2.0], dtype=torch.float64), fooled)
    assert found.memory["best"].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert found.memory["best_value"].tolist() == [1.0, 2.0] and found.memory["rises"].tolist() == [0.0, 1.0]


def test_targeted_searches_go_by_default_as_long_and_to_as_many_classes_as_published() -> None:
    defaults = {name: word.default for name, word in inspect.signature(apgd.apgd_targeted).parameters.items()}
    assert (defaults["steps"], defaults["targets"]) == (100, 9)


@pytest.mark.parametrize(
    ("fgsm", "pgd", "said"),
    [
        (0.9, 0.05, "catastrophic"), (0.9, 0.0, "catastrophic"), (0.9, 0.06, "overstates"), (0.9, 0.6, "overstates"),
        (0.25, 0.05, None), (0.5, 0.4, None),
    ],
)  # fmt: skip
def test_overfitting_is_catastrophic_up_to_one_in_twenty_and_told_apart_from_a_wide_gap(
    fgsm: float, pgd: float, said: str | None
) -> None:
    found = overfitting(fgsm, pgd)
    assert found is None if said is None else said in str(found)


@pytest.mark.parametrize("text", ["pgd:nan", "pgd:NaN,steps=3", "pgd:0.1,step=nan"])
def test_a_number_that_is_none_is_refused_as_a_budget_and_as_an_option(text: str) -> None:
    with pytest.raises(UserError, match=r"(nan|NaN).*a number") as caught:
        split_text(text, {"pgd": {"steps": int, "step": float}}, "pgd:0.3")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("quickest", layout_module.LAYOUTS)
def test_the_layout_whose_steps_take_least_time_is_chosen_whenever_it_is_tried(
    monkeypatch: pytest.MonkeyPatch, quickest: str
) -> None:
    now = [1000.0]
    monkeypatch.setattr(layout_module.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(layout_module, "_chosen", {})
    names: Iterator[str] = iter(layout_module.LAYOUTS * 4)

    def step(nets: NetworkSet) -> Tensor | None:
        now[0] += 1.0 if next(names) == quickest else 2.0
        return None

    nets: Any = NetworkSet({"net": nn.Sequential(nn.Conv2d(1, 2, 3))})
    assert layout_module.best_layout(nets, torch.device("cpu"), step).name == quickest
