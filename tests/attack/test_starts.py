"""Where an ascent may begin: inside the ball, with the whole budget where it says so, alike alone and stacked."""

from __future__ import annotations

import math

import pytest
import torch

from fewer.attack.attacks.starts import STARTS
from fewer.attack.ball import Ball, Bounds
from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.plain import Plain
from fewer.core.seed import Stream
from fewer.systems.vision.task.task import Settings, Vision

from .examples import stream


class Unit:
    bounds = torch.zeros(()), torch.ones(())


def ball(shape: tuple[int, ...], norm: float = math.inf) -> Ball:
    return Ball.around(stream().uniform("centre", shape) * 0.2 + 0.4, Bounds(Unit()), 0.25, norm)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("shape", [(6, 1, 9, 9), (6, 3, 28, 28), (6, 5), (1, 1)])
@pytest.mark.parametrize("norm", [2.0, math.inf])
def test_a_start_lies_in_the_ball(name: str, shape: tuple[int, ...], norm: float) -> None:
    around = ball(shape, norm)
    x = STARTS[name](around, stream(), "start")
    assert x.shape == shape
    assert torch.allclose(around.project(x), x, atol=1e-6)


@pytest.mark.parametrize("name", ["corners", "blocks", "stripes"])
def test_a_bold_start_spends_the_whole_budget_both_ways(name: str) -> None:
    around = ball((8, 1, 28, 28))
    change = (STARTS[name](around, stream(), "start") - around.centre) / around.budget
    assert torch.allclose(change.abs(), torch.ones(()), atol=1e-5)
    assert 0.25 < (change > 0).float().mean() < 0.75


def test_blocks_are_square_and_their_grid_moves_from_image_to_image() -> None:
    around = ball((64, 1, 28, 28))
    up = STARTS["blocks"](around, stream(), "start") > around.centre
    edges = (up[:, 0, 1:] != up[:, 0, :-1]).any(-1)  # (images, 27): rows where some block ends
    assert (edges.sum(1) <= 7).all()
    assert len({int(row.nonzero()[0]) % 4 for row in edges}) == 4


def test_stripes_do_not_change_along_a_column() -> None:
    up = STARTS["stripes"](ball((8, 1, 28, 28)), stream(), "start") > ball((8, 1, 28, 28)).centre
    assert (up == up[:, :, :1]).all()


def test_a_mixed_start_has_all_three_kinds() -> None:
    around = ball((90, 1, 28, 28))
    change = ((STARTS["mixed"](around, stream(), "start") - around.centre) / around.budget)[:, 0]
    bold = (change.abs() > 0.99).all(-1).all(-1)
    striped = bold & ((change > 0) == (change[:, :1] > 0)).all(-1).all(-1)
    counts = (int((~bold).sum()), int((bold & ~striped).sum()), int(striped.sum()))
    assert min(counts) > 15, counts


def test_hardening_from_mixed_starts_at_the_margin_is_the_same_alone_and_in_a_cohort() -> None:
    task = harden(Vision(Settings(network="cnn0")), "pgd:0.2,steps=2,step=0.2,last=0.1,start=mixed,aim=margin", total=4)
    training = Training(4, 8, precision="float64")
    alone, together = Plain(task, training, 1), Cohort(task, training, (0, 1))
    for _ in range(4):
        alone.step_(), together.step_()
    one, two = alone.state.modules_of(0)["net"], together.state.modules_of(1)["net"]
    for ours, theirs in zip(one.parameters(), two.parameters()):
        assert torch.allclose(ours, theirs, atol=1e-9)


def test_the_same_name_gives_the_same_start_and_another_another() -> None:
    around, noise = ball((4, 1, 28, 28)), Stream(torch.tensor(3), torch.tensor(7), torch.float32)
    for name in ("corners", "blocks", "stripes", "mixed"):
        first = STARTS[name](around, noise, "a")
        assert torch.equal(first, STARTS[name](around, noise, "a"))
        assert not torch.equal(first, STARTS[name](around, noise, "b"))
