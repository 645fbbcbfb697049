"""Decision thresholds, the calibration mask and bootstrap intervals."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fewer.core.data import TensorData
from fewer.core.errors import UserError
from fewer.systems.nowcast.task.baselines.climatology import Climatology, calibrated
from fewer.systems.nowcast.task.scores.intervals import average, difference, interval
from fewer.systems.nowcast.task.scores.scores import Scores
from fewer.systems.nowcast.task.scores.thresholds import choose, sweep
from fewer.systems.nowcast.task.windows import LEADS, Windows


def forecasts(samples: int = 12, seed: int = 0, *, leads: int = 4, size: int = 6) -> tuple[Tensor, ...]:
    """Probabilities that are right and get vaguer with lead time."""
    random = torch.Generator().manual_seed(seed)
    shape = (samples, leads, size, size)
    sharpness = torch.linspace(4, 0.5, leads).view(1, -1, 1, 1)
    probability = torch.sigmoid(sharpness * (torch.randn(shape, generator=random) - 1))
    rate = (torch.rand(shape, generator=random) < probability).float()
    valid = (torch.rand(shape, generator=random) < 0.9).float()
    return probability, rate, valid, torch.arange(samples) % 3


def scored(parts: tuple[Tensor, ...], decision: float | list[float] = 0.5) -> Scores:
    scores = Scores(decision=decision)
    scores.add(*parts)
    return scores


def test_the_sweep_says_what_counting_anew_at_each_threshold_says() -> None:
    parts = forecasts()
    tried = sweep(scored(parts))
    assert [threshold for threshold, _ in tried] == pytest.approx([k / 100 for k in range(20, 71)])
    for threshold, iou in tried[::10]:
        assert iou == pytest.approx(scored(parts, threshold).metrics()["iou"])


def test_the_chosen_threshold_is_the_best_of_the_sweep_and_holds_where_it_was_chosen() -> None:
    parts = forecasts()
    choice = choose(scored(parts))
    assert choice.iou == max(iou for _, iou in sweep(scored(parts)))
    assert scored(parts, choice.thresholds).metrics()["iou"] == pytest.approx(choice.iou)


def test_a_threshold_for_each_lead_time_is_never_worse_where_chosen_and_falls_as_skill_falls() -> None:
    parts = forecasts(samples=60, size=12)
    one, each = choose(scored(parts)), choose(scored(parts), per_lead=True)
    assert each.iou > one.iou
    assert scored(parts, each.thresholds).metrics()["iou"] == pytest.approx(each.iou)
    assert each.thresholds[0] > each.thresholds[-1]


def test_thresholds_need_forecasts_and_an_order() -> None:
    with pytest.raises(UserError, match="at least one window"):
        choose(Scores())
    with pytest.raises(UserError, match="the lower first"):
        sweep(scored(forecasts()), 0.7, 0.2)


def windows(rate: Tensor, place: list[int]) -> TensorData[Windows]:
    """(samples, size, size) held over all lead times."""
    samples, size = rate.shape[:2]
    full = rate[:, None].expand(-1, LEADS, -1, -1)
    empty = torch.zeros(samples, 4, 11, size, size)
    return TensorData(Windows(empty, empty[:, :, 0], full, torch.ones_like(full), torch.tensor(place)))


def test_climatology_is_the_share_of_wet_windows_at_each_pixel() -> None:
    rate = torch.zeros(2, 6, 6)
    rate[0, 0, 0] = 1.0
    rate[:, 1, 1] = 1.0
    climate = Climatology(windows(rate, [3, 3]))
    share = 3 / 72  # pulled to the place's share with 32 pixels' weight; each pixel was seen 2 x 32 times
    expected = [(1 + share) / 3, (2 + share) / 3, share / 3]
    found = climate.at(torch.tensor([3]))[0, 0]
    assert [float(found[0, 0]), float(found[1, 1]), float(found[2, 2])] == pytest.approx(expected, rel=1e-4)
    batch = windows(rate, [3, 8]).take(torch.arange(2))
    forecast = climate(batch)
    assert forecast.shape == batch.rate.shape
    assert torch.equal(forecast[1, 5], climate.everywhere)  # a place never seen


def test_the_calibration_mask_lowers_what_rained_more_in_training() -> None:
    wetter = torch.zeros(2, 6, 6)
    wetter[:, :, :3] = 1.0
    train, validation = (
        Climatology(windows(rate, [0, 0])).at(torch.tensor([0]))[:, 0] for rate in (wetter, wetter.flip(-1))
    )
    batch = windows(wetter, [0, 0]).take(torch.arange(1))
    found = calibrated(lambda batch: torch.full_like(batch.rate, 0.3), train, validation)(batch)
    apart = float(train[0, 0, 0] - validation[0, 0, 0])
    assert apart > 0.3
    assert float(found[0, 0, 0, 0]) == pytest.approx(0.3 / (1 + apart))
    assert float(found[0, 0, 0, 5]) == pytest.approx(0.3 / (1 - apart), abs=1e-5)
    assert found.max() <= 1


def test_an_interval_holds_its_figure_and_narrows_with_more_windows() -> None:
    few, many = interval(scored(forecasts(samples=12))), interval(scored(forecasts(samples=240)))
    for found in (few, many):
        assert found.low < found.value < found.high
    assert many.high - many.low < 0.5 * (few.high - few.low)


def test_blocks_of_equal_windows_widen_the_interval_by_the_root_of_their_length() -> None:
    parts = forecasts(samples=90, seed=2)
    repeated = tuple(part.repeat_interleave(4, 0) for part in parts)
    # sort by place so that the four copies are consecutive within a place
    order = repeated[3].argsort(stable=True)
    copies = scored(tuple(part[order] for part in repeated))
    naive, honest = interval(copies), interval(copies, block=4)
    assert (honest.high - honest.low) / (naive.high - naive.low) == pytest.approx(2.0, rel=0.25)


def test_a_paired_difference_is_surer_than_two_intervals() -> None:
    parts = forecasts(samples=60)
    first, second = scored(parts, 0.4), scored(parts, 0.6)
    found = difference(first, second)
    assert found.value == pytest.approx(first.metrics()["iou"] - second.metrics()["iou"])
    apart = interval(first)
    assert found.high - found.low < apart.high - apart.low
    same = difference(first, first)
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0)
    with pytest.raises(UserError, match="same windows"):
        difference(first, scored(forecasts(samples=9)))


def test_the_interval_of_a_mean_holds_it_as_often_as_the_normal_law_says() -> None:
    values, places = torch.randn(400, generator=torch.Generator().manual_seed(0)), torch.arange(400) % 4
    found = average(values, places)
    assert found.value == pytest.approx(float(values.mean()), abs=1e-6)
    assert found.high - found.low == pytest.approx(2 * 1.96 * float(values.std()) / 20, rel=0.1)
    # what differs from place to place only is certain: places are not drawn, windows are
    assert average(places.double(), places) == (1.5, 1.5, 1.5)
