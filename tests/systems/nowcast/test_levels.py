"""Levels of probability: to the bit where each begins, and the average precision that is counted from them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score
from torch import Tensor

from fewer.systems.nowcast.task.scores.scores import LEVELS, Scores, average_precision, average_precisions, leveled

EDGES = torch.tensor([k / LEVELS for k in range(LEVELS)], dtype=torch.float64).float()
BELOW = torch.nextafter(EDGES[1:], torch.tensor(0.0))


def filed(probability: Tensor, rain: Tensor) -> dict[str, float]:
    """Figures of forecasts (pixels,) and whether it rained there."""
    scores = Scores()
    rate = rain.float().view(1, 1, 1, -1)
    scores.add(probability.view(1, 1, 1, -1), rate, torch.ones_like(rate), torch.tensor([0]))
    return scores.metrics()


def test_a_level_begins_at_its_edge_and_ends_one_bit_below_the_next() -> None:
    assert leveled(EDGES).tolist() == list(range(LEVELS))
    assert leveled(BELOW).tolist() == list(range(LEVELS - 1))
    ends = [0.0, 1.0, float(torch.nextafter(torch.tensor(1.0), torch.tensor(0.0)))]
    assert leveled(torch.tensor(ends)).tolist() == [0, LEVELS - 1, LEVELS - 1]


@pytest.mark.parametrize("level", range(1, LEVELS))
def test_rain_at_an_edge_and_none_one_bit_below_are_told_apart(level: int) -> None:
    probability = torch.stack([EDGES[level], BELOW[level - 1]])
    assert filed(probability, torch.tensor([True, False]))["average_precision"] == 1.0
    # dry at the edge, wet one bit below: the only rain is found with one false alarm
    assert filed(probability, torch.tensor([False, True]))["average_precision"] == 0.5


def test_within_a_level_nothing_is_told_apart() -> None:
    for level in range(LEVELS - 1):
        probability = torch.stack([BELOW[level], EDGES[level]])
        assert filed(probability, torch.tensor([True, False]))["average_precision"] == 0.5


def test_precision_is_that_of_scikit_learn_for_forecasts_rounded_down_to_their_level() -> None:
    random = np.random.default_rng(0)
    level = random.integers(0, LEVELS, 400)
    lowest = EDGES[torch.from_numpy(level)]
    highest = torch.nextafter(torch.cat([EDGES[1:], torch.tensor([1.5])])[torch.from_numpy(level)], torch.tensor(0.0))
    rain = torch.from_numpy(random.random(400) < level / LEVELS)
    expected = average_precision_score(rain.numpy(), level)
    for probability in (lowest, highest.clamp(max=1.0)):
        assert filed(probability, rain)["average_precision"] == pytest.approx(expected, rel=1e-12)


def test_precision_by_hand_from_the_highest_level_down_and_of_many_at_once() -> None:
    levels = torch.tensor([[3, 2, 1, 0], [1, 0, 2, 1]])  # dry, wet
    by_hand = (1 * 1 / 1 + 2 * 3 / 4 + 0 + 1 * 4 / 10) / 4
    assert average_precision(levels) == pytest.approx(by_hand)
    none = torch.tensor([[3, 2, 1, 0], [0, 0, 0, 0]])
    assert average_precisions(torch.stack([levels, none])).tolist() == pytest.approx([by_hand, 0.0])
