"""Statistics over seeds: every seed may be drawn, and the interval is that of the mean."""

from __future__ import annotations

import pytest

from fewer.systems.control.task.statistics import interquartile_mean, statistics


def test_every_seed_may_be_drawn_and_the_interval_reaches_both_ends_of_two() -> None:
    found = statistics([0.0, 10.0])
    assert (found["mean"], found["median"], found["low"], found["high"]) == (5.0, 5.0, 0.0, 10.0)


def test_episodes_of_a_seed_are_averaged_before_seeds_are_drawn() -> None:
    assert statistics([[0.0, 10.0], [4.0, 6.0]]) == statistics([5.0, 5.0])
    assert statistics([5.0, 5.0])["low"] == 5.0


def test_the_middle_half_counts_values_on_its_edge_by_their_part() -> None:
    assert interquartile_mean([0, 1, 2, 100]) == 1.5
    assert interquartile_mean([0, 1, 2]) == pytest.approx((0.25 * 0 + 1 + 0.25 * 2) / 1.5)
