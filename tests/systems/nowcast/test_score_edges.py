"""Scores, intervals and thresholds where a single pixel, place, draw or tie decides."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.scores.intervals import average, difference, interval, pooled_difference
from fewer.systems.nowcast.task.scores.neighbourhood import Neighbourhood, fractions
from fewer.systems.nowcast.task.scores.scores import Counts, Scores, average_precision, mean_iou
from fewer.systems.nowcast.task.scores.shares import remark
from fewer.systems.nowcast.task.scores.thresholds import choose, counts_at, sweep

from .test_scores import fields


def counts(*groups: tuple[int, int, int, int]) -> Counts:
    return Counts(*torch.tensor(groups, dtype=torch.float64).T)


def scored(parts: tuple[Tensor, ...], **words: object) -> Scores:
    scores = Scores(**words)  # type: ignore[arg-type]
    scores.add(*parts)
    return scores


def one(probability: list[float], rate: list[float], valid: list[float] | None = None) -> tuple[Tensor, ...]:
    """A single window of one lead time and one row of pixels."""
    fields = (probability, rate, valid or [1.0] * len(rate))
    return *(torch.tensor(part).view(1, 1, 1, -1) for part in fields), torch.zeros(1, dtype=torch.int64)


def test_a_single_dry_pixel_that_was_forecast_dry_is_agreement_and_none_at_all_is_not() -> None:
    assert counts((0, 0, 0, 1), (0, 0, 0, 0)).iou().tolist() == [1.0, 0.0]
    assert counts((0, 0, 0, 1), (0, 0, 0, 0)).pod().tolist() == [1.0, 0.0]


@pytest.mark.parametrize("group", [(1, 0, 0, 5), (0, 1, 0, 5), (0, 0, 1, 5)])
def test_one_pixel_of_rain_in_forecast_or_truth_makes_a_group_count(group: tuple[int, int, int, int]) -> None:
    assert mean_iou(counts(group, (0, 0, 0, 9))) == float(group[0])
    assert mean_iou(counts((0, 0, 0, 9), (0, 0, 0, 0))) == 1.0


def test_every_pixel_is_a_hit_a_false_alarm_a_miss_or_quiet() -> None:
    parts = fields()
    found = scored(parts).counts
    assert torch.equal(torch.stack(found).sum(0), parts[2].sum((-2, -1)).double())
    again = counts_at(scored(parts))  # of each threshold
    assert bool((torch.stack(again).sum(0) == torch.stack(again)[:, :1].sum(0)).all())
    assert all(bool((part >= 0).all()) for part in again)


@pytest.mark.parametrize("decision", [1.0, 0.01, [0.5, 1.0]])
def test_a_decision_may_be_any_probability_above_nothing(decision: float | list[float]) -> None:
    Scores(decision=decision)


@pytest.mark.parametrize("decision", [0.0, 1.01, 2.0, -0.5, [0.5, 1.5]])
def test_a_decision_that_is_no_probability_is_refused(decision: float | list[float]) -> None:
    with pytest.raises(UserError, match="decision thresholds"):
        Scores(decision=decision)


def test_reliability_leaves_out_what_no_radar_saw() -> None:
    (level,) = scored(one([0.83, 0.85, 0.87], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0])).reliability()
    assert (level.pixels, level.observed) == (2, 0.5) and level.forecast == pytest.approx(0.84)


def test_precision_is_averaged_over_recall_whichever_level_is_met_first() -> None:
    levels = torch.tensor([[4, 2, 0, 1], [1, 0, 1, 2]])
    # said wet from the highest level on: 2 of 3, 3 of 4, 3 of 6, 4 of 11
    assert average_precision(levels) == pytest.approx((2 / 3 * 2 + 3 / 4 * 1 + 4 / 11 * 1) / 4)


def test_fields_of_other_shapes_are_refused_and_of_one_shape_are_not() -> None:
    probability, rate, valid, place = fields()
    for wrong in (
        (probability[:, :1], rate, valid, place), (probability, rate, valid[:, :1], place),
        (probability, rate, valid, place[:2]),
    ):  # fmt: skip
        with pytest.raises(UserError, match="shapes"):
            Scores().add(*wrong)


def test_a_share_of_a_square_counts_the_seen_pixels_on_both_sides() -> None:
    rain = torch.tensor([[[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]]])
    seen = torch.ones(1, 1, 3, 3, dtype=torch.bool)
    seen[..., 0, 2] = False
    expected = torch.tensor([[1 / 4, 1 / 5, 0], [1 / 6, 2 / 8, 1 / 5], [0, 1 / 6, 1 / 4]])
    assert torch.allclose(fractions(rain, seen, 3)[0, 0], expected)
    assert torch.equal(fractions(rain[0], seen[0], 3), fractions(rain, seen, 3)[0])  # whatever axes come before


def test_all_lead_times_of_a_neighbourhood_are_pooled() -> None:
    skill = Neighbourhood(1)
    said = torch.tensor([[1, 0], [1, 1]], dtype=torch.bool).view(1, 2, 1, 2)
    fell = torch.tensor([[1, 1], [0, 0]], dtype=torch.bool).view(1, 2, 1, 2)
    skill.add(said, fell, torch.ones_like(said))
    assert skill.by_lead().tolist() == pytest.approx([1 - 1 / 3, 1 - 2 / 2])
    assert skill.overall() == pytest.approx(1 - 3 / 5)


def test_a_place_without_rain_is_left_out_of_every_draw_and_one_place_counts_whole() -> None:
    probability, rate, valid, place = fields()
    dry = torch.where(place.view(-1, 1, 1, 1) == 1, 0.0, 1.0)
    found = interval(scored((probability * dry, rate * dry, valid, place)), draws=50)
    alone = interval(scored(tuple(part[place == 0] for part in (probability, rate, valid, place))), draws=50)
    assert found.value == pytest.approx(alone.value) and found.high <= 1
    assert found.low < found.value < found.high
    assert abs(found.low - alone.low) < 0.05 and abs(found.high - alone.high) < 0.05  # other draws, the same place


def test_a_difference_is_the_first_above_the_second_and_of_the_same_windows() -> None:
    better, worse = scored(fields()), scored(fields(), decision=0.9)
    found, back = difference(better, worse, draws=40), difference(worse, better, draws=40)
    assert found.value == better.metrics()["iou"] - worse.metrics()["iou"] == -back.value
    assert (found.low, found.high) == (-back.high, -back.low) and found.low <= found.value <= found.high


def test_a_mean_over_windows_draws_each_window_by_itself() -> None:
    values = torch.tensor([0.0, 1.0, 0.0, 1.0])
    found = average(values, torch.zeros(4), draws=2000)
    assert found.value == 0.5
    assert (found.low, found.high) == (0.0, 1.0)  # (1/2)^4 is 6 %: in pairs it would be 0.5 throughout


def test_a_pooled_difference_is_that_of_what_all_windows_add_up_to() -> None:
    first, second = torch.tensor([[1.0, 4.0], [2.0, 4.0], [3.0, 4.0]]), torch.tensor([[1.0, 8.0]] * 3)

    def ratio(sums: Tensor) -> Tensor:
        return sums[..., 0] / sums[..., 1]

    found = pooled_difference(first, second, torch.zeros(3), ratio, draws=500)
    assert found.value == pytest.approx(6 / 12 - 3 / 24)
    assert (found.low, found.high) == pytest.approx((3 / 12 - 1 / 8, 9 / 12 - 1 / 8), abs=0.09)


@pytest.mark.parametrize(("block", "draws"), [(0, 5), (1, 0), (-1, 5)])
def test_no_draws_and_no_blocks_are_refused(block: int, draws: int) -> None:
    with pytest.raises(UserError, match="both 1 or more"):
        interval(scored(fields()), block=block, draws=draws)


def test_one_draw_of_blocks_of_one_window_is_allowed() -> None:
    found = interval(scored(fields()), block=1, draws=1)
    assert found.low == found.high


def test_thresholds_are_tried_from_a_fifth_to_seven_tenths() -> None:
    assert [threshold for threshold, _ in sweep(scored(fields()))] == pytest.approx([k / 100 for k in range(20, 71)])


def test_among_equal_thresholds_the_one_nearest_to_a_half_is_chosen() -> None:
    assert choose(scored(one([0.1, 0.9], [0.0, 1.0]))).thresholds == [0.5]
    assert choose(scored(one([0.1, 0.4], [0.0, 1.0]))).thresholds == [0.4]
    assert choose(scored(one([0.6, 0.9], [0.0, 1.0]))).thresholds == [0.61]


def test_areas_within_half_a_percent_are_the_same_area() -> None:
    assert "too much area at 0 and too little at 0 of 2" in remark([0.105, 0.1], [0.1, 0.105])
    assert "too much area at 0 and too little at 0 of 2" in remark([0.005, 0.0], [0.0, 0.005])  # not farther than that
    assert "everywhere" not in remark([0.995, 1.0], [0.5, 0.5])
    assert "too much area at 1 and too little at 1 of 3" in remark([0.106, 0.1, 0.2], [0.1, 0.106, 0.2])
    assert remark([0.996, 1.0], [0.5, 0.5]).startswith("The forecast says rain everywhere at every hour")
    assert remark([0.994, 1.0], [0.5, 0.5]).startswith("The forecast says rain on 99, 100 % of the area")
    assert remark([0.0, 0.004], [0.5, 0.5]).startswith("The forecast says no rain anywhere")
