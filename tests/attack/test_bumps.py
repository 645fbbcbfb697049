"""Bumps of the L2 Square attack, by hand; and what the attacks' authors published as their settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from fewer.attack.attacks.apgd import apgd, apgd_targeted
from fewer.attack.attacks.bumps import _placed, bump, first_bumps, moved_bump
from fewer.attack.attacks.fab import fab_targeted
from fewer.attack.attacks.pgd import default_step
from fewer.attack.attacks.square import square
from fewer.systems.vision.task.task import Vision

from .examples import stream


def test_in_a_single_row_hill_and_valley_are_equally_wide() -> None:
    found = bump(1, 6)[0]
    assert (found[:3] > 0).all() and (found[3:] < 0).all()
    assert torch.allclose(found[:3], -found[3:])
    assert (bump(1, 7)[0] > 0).sum() == 3


def test_a_pattern_lies_at_each_samples_own_place_and_nowhere_else() -> None:
    pattern = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    placed, window = _placed(pattern, torch.tensor([0, 2]), torch.tensor([3, 0]), (4, 6))
    expected = torch.zeros(2, 1, 4, 6)
    expected[0, 0, 0:2, 3:6] = pattern
    expected[1, 0, 2:4, 0:3] = pattern
    assert torch.equal(placed, expected) and torch.equal(window, expected > 0)


def test_a_first_guess_is_equally_strong_everywhere_and_a_moved_bump_goes_with_what_was_there(
    images: Callable[[int], Any], mlp: Vision
) -> None:
    batch = images(8)._replace(pixels=torch.full((8, 1, 28, 28), 0.5, dtype=torch.float64))
    state = square(mlp, 2.0, queries=6, norm=2).begin(batch, stream(4, dtype=torch.float64))
    offset = first_bumps(state, "a")
    tiles = offset[:, 0, 1:26, 1:26].reshape(8, 5, 5, 5, 5).square().sum((2, 4))  # 5 x 5 bumps of 5 x 5 pixels
    assert torch.allclose(tiles, tiles[0, 0, 0]) and len(offset[:, 0, 3, 3].sign().unique()) == 2
    state = state.noted(state.fooled, state.ball.centre + offset)
    moved = moved_bump(state, "b", 28) - state.ball.centre  # one window, the whole image
    assert ((moved * offset).flatten(1).sum(1) > 0).all()


def test_settings_that_nobody_gives_are_the_published_ones() -> None:
    def given(attack: Callable[..., Any], name: str) -> Any:
        return inspect.signature(attack).parameters[name].default

    assert given(apgd, "steps") == given(apgd_targeted, "steps") == 100 and given(apgd_targeted, "targets") == 9
    assert given(fab_targeted, "targets") == 9
    assert default_step(0.3, 40) == pytest.approx(0.01) and default_step(0.3, 400) == pytest.approx(0.01)
    assert default_step(0.3, 1) == default_step(0.3, 0) == pytest.approx(0.4)
