"""Scores against counting by hand, another library, and themselves in other batches."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, jaccard_score
from torch import Tensor

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.scores.neighbourhood import Neighbourhood, fractions
from fewer.systems.nowcast.task.scores.scores import Scores, wet

Fields = tuple[Tensor, Tensor, Tensor, Tensor]


def fields(samples: int = 6, seed: int = 0, *, leads: int = 3, size: int = 8) -> Fields:
    random = torch.Generator().manual_seed(seed)
    shape = (samples, leads, size, size)
    rate = torch.rand(shape, generator=random) * 0.6 * (torch.rand(shape, generator=random) < 0.5)
    probability = 0.75 * torch.rand(shape, generator=random) + 0.25 * (rate > 0.2)
    valid = (torch.rand(shape, generator=random) < 0.8).float()
    return probability, rate, valid, torch.arange(samples) % 2


def test_three_pixels_counted_by_hand() -> None:
    scores = Scores(scales=(1,))
    # pixels: hit, false alarm, miss, quiet, and one that no radar saw
    probability = torch.tensor([0.9, 0.5, 0.49, 0.0, 1.0]).view(1, 1, 1, 5)
    rate = torch.tensor([0.2, 0.19, 5.0, 0.0, 0.0]).view(1, 1, 1, 5)
    valid = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0]).view(1, 1, 1, 5)
    scores.add(probability, rate, valid, torch.tensor([7]))
    found = scores.metrics()
    assert found["iou"] == found["csi"] == found["iou_per_sample"] == pytest.approx(1 / 3)
    assert (found["pod"], found["far"], found["wet"], found["forecast_wet"]) == (0.5, 0.5, 0.5, 0.5)
    assert found["brier"] == pytest.approx((0.01 + 0.25 + 0.51**2 + 0) / 4)
    assert found["fss_1"] == pytest.approx(1 - 2 / 4)  # at one pixel: differences 2, squares 2 + 2
    assert next(iter(found)) == "iou" and found["pixels"] == 4
    assert scores.by_place() == {"7": pytest.approx(1 / 3)}


def test_rain_is_anything_above_zero_in_stage_one_and_a_fifth_of_a_millimetre_in_stage_two() -> None:
    rate = torch.tensor([0.0, 0.01, 0.2, 0.3])
    assert wet(rate, 0.0).tolist() == [False, True, True, True]
    assert wet(rate).tolist() == [False, False, True, True]


def test_the_first_figure_pools_within_a_region_year_and_then_averages() -> None:
    scores = Scores(regions=("north 2019", "south 2019"))
    # north: a sample of 1 hit in 1, and one of 0 in 3; south: 1 hit in 2
    said = torch.tensor([[1.0, 0, 0, 0], [1, 1, 1, 0], [1, 1, 0, 0]]).view(3, 1, 1, 4)
    rate = torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]).view(3, 1, 1, 4)
    scores.add(said, rate, torch.ones_like(rate), torch.tensor([0, 0, 1]))
    assert scores.by_place() == {"north 2019": 0.25, "south 2019": 0.5}
    found = scores.metrics()
    assert found["iou"] == pytest.approx(0.375)
    assert found["iou_per_sample"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert found["csi"] == pytest.approx(2 / 6)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(0, 1000))
def test_nothing_depends_on_the_batches(per_batch: int, seed: int) -> None:
    whole, split = Scores(scales=(3,)), Scores(scales=(3,))
    parts = fields(seed=seed)
    whole.add(*parts)
    for batch in zip(*(part.split(per_batch) for part in parts)):
        split.add(*batch)
    assert split.metrics() == pytest.approx(whole.metrics(), abs=1e-12)
    for name, leads in whole.by_lead().items():
        assert split.by_lead()[name] == pytest.approx(leads, abs=1e-12)
    assert np.array(split.reliability()) == pytest.approx(np.array(whole.reliability()))


def test_scikit_learn_counts_the_same() -> None:
    probability, rate, valid, place = fields()
    scores = Scores()
    scores.add(probability, rate, valid, place)
    seen = valid > 0
    each = [
        jaccard_score(wet(rate)[place == k][seen[place == k]], probability[place == k][seen[place == k]] >= 0.5)
        for k in (0, 1)
    ]
    assert scores.metrics()["iou"] == pytest.approx(np.mean(each))
    assert scores.metrics()["brier"] == pytest.approx(brier_score_loss(wet(rate)[seen], probability[seen]), rel=1e-6)
    leads = [jaccard_score(wet(rate)[:, k][seen[:, k]], probability[:, k][seen[:, k]] >= 0.5) for k in range(3)]
    assert scores.by_lead()["iou"] == pytest.approx(leads)


def test_reliability_holds_what_was_given_against_what_fell() -> None:
    probability, rate, valid, place = fields(seed=3)
    scores = Scores()
    scores.add(probability, rate, valid, place)
    given, fell = probability[valid > 0], wet(rate)[valid > 0]
    for row, low in zip(scores.reliability(10), range(10)):
        inside = (given >= low / 10) & (given < (low + 1) / 10)
        assert row.pixels == int(inside.sum())
        assert row.forecast == pytest.approx(float(given[inside].mean()), rel=1e-5)
        assert row.observed == pytest.approx(float(fell[inside].float().mean()), rel=1e-5)


def test_a_decision_threshold_for_each_lead_time() -> None:
    probability = torch.full((1, 2, 1, 2), 0.4)
    rate = torch.tensor([[1.0, 1.0], [1.0, 0.0]]).view(1, 2, 1, 2)
    scores = Scores(decision=[0.3, 0.5])
    scores.add(probability, rate, torch.ones_like(rate), torch.tensor([0]))
    assert scores.by_lead()["iou"] == [1.0, 0.0]
    with pytest.raises(UserError, match="probabilities above 0"):
        Scores(decision=0.0)


def test_dry_missing_and_unknown_samples_give_no_nan() -> None:
    dry, nothing = torch.zeros(1, 2, 4, 4), torch.zeros(1, 2, 4, 4)
    agreed = Scores(scales=(3,))
    agreed.add(dry, dry, torch.ones_like(dry), torch.tensor([0]))
    assert (agreed.metrics()["iou"], agreed.metrics()["fss_3"], agreed.metrics()["far"]) == (1.0, 1.0, 0.0)
    missing = Scores(scales=(3,))
    missing.add(torch.ones_like(dry), torch.full_like(dry, torch.nan), nothing, torch.tensor([0]))
    assert (missing.metrics()["iou"], missing.metrics()["pixels"], missing.metrics()["fss_3"]) == (0.0, 0.0, 0.0)
    assert missing.reliability() == []
    mixed = Scores(scales=(3,))
    probability, rate, valid, place = fields()
    mixed.add(probability, rate, valid, place)
    before = mixed.metrics()
    mixed.add(torch.zeros(1, 3, 8, 8), torch.zeros(1, 3, 8, 8), torch.ones(1, 3, 8, 8), torch.tensor([9]))
    assert mixed.metrics()["iou"] == pytest.approx(before["iou"])  # the dry region-year is left out of the mean
    unknown = Scores()
    unknown.add(torch.full_like(dry, torch.nan), torch.ones_like(dry), torch.ones_like(dry), torch.tensor([0]))
    assert unknown.metrics()["iou"] == 0.0 and unknown.metrics()["unknown"] == 1.0
    every = [*agreed.metrics().values(), *missing.metrics().values(), *unknown.metrics().values()]
    assert all(math.isfinite(value) for value in every)


def test_fractions_are_those_of_a_walk_over_every_window() -> None:
    random = torch.Generator().manual_seed(1)
    rain = torch.rand(1, 1, 7, 6, generator=random) < 0.4
    seen = torch.rand(1, 1, 7, 6, generator=random) < 0.7
    found = fractions(rain, seen, 3)[0, 0]
    for y in range(7):
        for x in range(6):
            window = (0, 0, slice(max(y - 1, 0), y + 2), slice(max(x - 1, 0), x + 2))
            count = int(seen[window].sum())
            expected = int((rain & seen)[window].sum()) / count if count else 0.0
            assert float(found[y, x]) == pytest.approx(expected)


def test_a_forecast_one_pixel_away_gains_skill_with_the_scale() -> None:
    truth = torch.zeros(1, 1, 15, 15, dtype=torch.bool)
    truth[..., 7, 7] = True
    skills = []
    for scale in (1, 3, 7):
        neighbourhood = Neighbourhood(scale)
        neighbourhood.add(truth.roll(1, -1), truth, torch.ones_like(truth))
        skills.append(neighbourhood.overall())
    # at 3 pixels: 9 fractions of 1/9 each, 6 shared: 1 - (6/81) / (18/81)
    assert skills[:2] == pytest.approx([0.0, 2 / 3]) and skills[2] > skills[1]
    with pytest.raises(UserError, match="odd width"):
        Neighbourhood(4)


def test_shapes_that_do_not_fit_are_one_line() -> None:
    probability, rate, valid, place = fields()
    with pytest.raises(UserError, match="leads, height, width"):
        Scores().add(probability[:, :2], rate, valid, place)
    with pytest.raises(UserError, match="at least one forecast"):
        Scores().metrics()
