"""Shrinking until it hurts: where it stops, what it never trains, and that the network really becomes smaller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
import torch
from torch import nn

from fewer.core.errors import UserError
from fewer.pruning.features.shrink import Stage
from fewer.pruning.features.tolerance import until_it_hurts


class Ladder:
    """Stages with ever fewer features; notes how many were asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __iter__(self) -> Iterator[Stage]:
        for size in (4, 3, 2, 1):
            self.asked += 1
            yield Stage({"net": nn.Linear(size, 1)}, torch.arange(size))


def figure(values: Mapping[int, float]):  # type: ignore[no-untyped-def]
    return lambda modules: values[modules["net"].in_features]


FIRST = {"net": nn.Linear(5, 1)}


def test_the_first_stage_that_falls_too_far_is_the_last_and_no_other_is_trained() -> None:
    ladder = Ladder()
    found = list(until_it_hurts(FIRST, ladder, figure({5: 0.9, 4: 0.89, 3: 0.8, 2: 0.9, 1: 0.9}), tolerance=0.02))
    assert [(value, stands) for _, value, stands in found] == [(0.89, True), (0.8, False)]
    assert ladder.asked == 2


def test_small_losses_do_not_add_up_unseen() -> None:
    slope = {5: 0.9, 4: 0.89, 3: 0.88, 2: 0.87, 1: 0.86}
    found = list(until_it_hurts(FIRST, Ladder(), figure(slope), tolerance=0.025))
    assert [stands for _, _, stands in found] == [True, True, False]


def test_a_better_stage_raises_what_the_next_ones_are_held_to() -> None:
    found = list(until_it_hurts(FIRST, Ladder(), figure({5: 0.5, 4: 0.9, 3: 0.6, 2: 0, 1: 0}), tolerance=0.2))
    assert [stands for _, _, stands in found] == [True, False]


def test_without_end_of_tolerance_all_stages_come() -> None:
    found = list(until_it_hurts(FIRST, Ladder(), figure(dict.fromkeys(range(6), 0.0)), tolerance=0.0))
    assert len(found) == 4


def test_a_tolerance_below_zero_is_refused() -> None:
    with pytest.raises(UserError, match="tolerance"):
        list(until_it_hurts(FIRST, Ladder(), figure({}), tolerance=-0.1))
