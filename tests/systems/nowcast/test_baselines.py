"""Motion, extrapolation and what persistence means without a radar."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter, shift

from fewer.core.data import TensorData
from fewer.core.errors import UserError
from fewer.systems.nowcast.bench import radar as bench
from fewer.systems.nowcast.bench import rivals
from fewer.systems.nowcast.task.baselines.extrapolation import (
    decision,
    displacements,
    extrapolate,
    matched,
    outlook,
    paths,
)
from fewer.systems.nowcast.task.baselines.motion import Field, carried, motion
from fewer.systems.nowcast.task.baselines.persistence import SatelliteExtrapolation, SatellitePersistence, persistence
from fewer.systems.nowcast.task.windows import LEADS, SEEN, Windows


def showers(seed: int = 0, size: int = 96) -> Field:
    """Rates in mm/h, dry in places."""
    noise = np.random.default_rng(seed).normal(size=(size, size))
    smooth = gaussian_filter(noise, 4, mode="wrap")
    return np.clip(smooth / smooth.std() - 0.5, 0, None).astype(np.float32) * 4


@settings(max_examples=6, deadline=None)
@given(st.floats(-5, 5), st.floats(-5, 5), st.integers(0, 50))
def test_motion_finds_a_shift_of_any_direction(rows: float, columns: float, seed: int) -> None:
    first = showers(seed)
    second = shift(first, (rows, columns), order=1, mode="grid-wrap")
    found = motion(np.stack([first, second]))[:, 24:72, 24:72].mean((1, 2))
    assert found == pytest.approx([rows, columns], abs=0.35)


def test_what_is_unknown_does_not_disturb_the_motion() -> None:
    first = showers(3)
    images = np.stack([first, shift(first, (2, -3), order=1, mode="grid-wrap")])
    images[:, :, :30] = np.nan
    images[1, 60:] = np.nan
    found = motion(images)[:, 20:50, 45:80].mean((1, 2))
    assert found == pytest.approx([2, -3], abs=0.4)


def test_a_dry_map_stands_still_and_is_forecast_dry() -> None:
    dry = np.zeros((2, 40, 50), np.float32)
    assert np.abs(motion(dry)).max() == 0
    found = extrapolate(dry, 3)
    assert found.shape == (3, 40, 50) and found.max() < 0.1
    unknown = np.full((2, 40, 50), np.nan, np.float32)
    assert np.isfinite(extrapolate(unknown, 2)).all()
    with pytest.raises(UserError, match="two or more times"):
        motion(dry[:1])


def test_steady_motion_is_followed_back_and_turning_motion_turns() -> None:
    steady = np.stack([np.full((30, 30), 1.5), np.full((30, 30), -2.0)]).astype(np.float32)
    last = list(displacements(steady, 4))[-1]
    assert last[0] == pytest.approx(np.full((30, 30), 6.0)) and last[1] == pytest.approx(np.full((30, 30), -8.0))
    # a rigid turn by 3 degrees a step: after 10 steps what lies at an angle of 30 degrees has come from 0
    rows, columns = np.indices((81, 81)) - 40.0
    turning = np.deg2rad(3) * np.stack([columns, -rows]).astype(np.float32)
    far = list(displacements(turning, 10))[-1]
    angle = np.deg2rad(30)
    row, column = round(20 * np.sin(angle)), round(20 * np.cos(angle))
    came = np.array([row, column]) - far[:, 40 + row, 40 + column]
    assert np.rad2deg(np.arctan2(came[0], came[1])) == pytest.approx(0, abs=1.5)


def test_paths_on_a_coarse_grid_are_those_of_every_pixel() -> None:
    rows, columns = np.indices((80, 96)) - 40.0
    turning = (0.01 * np.stack([columns, -rows])).astype(np.float32)
    each = list(displacements(15 * turning, 4))
    for found, expected in zip(paths(turning, [15.0, 30.0, 45.0, 60.0]), each):
        np.testing.assert_allclose(found[:, 8:56, 8:80], expected[:, 8:56, 8:80], atol=0.6)


def test_the_rate_field_keeps_the_areas_of_rain_that_stays_in_sight() -> None:
    first = showers(7, 128)
    first[:, :24], first[:, -40:] = 0, 0
    last = np.roll(first, 3, 1)
    found = outlook(np.stack([first, last]), [0, 15], [30.0, 60.0], pixel_km=2.0)
    for lead in (0, 1):
        for least in (0.5, 2.0):
            assert float((found.rate[lead] >= least).mean()) == pytest.approx(float((last >= least).mean()), rel=0.1)
    assert (np.diff(found.probability, axis=0) <= 1e-6).all()
    assert matched(np.zeros((7, 5, 5), np.float32), np.zeros(10), np.zeros((5, 5), np.float32)).max() == 0


def test_a_cloudburst_stays_one() -> None:
    first = 12 * showers(7, 128)
    first[:, :24], first[:, -40:] = 0, 0
    last = np.roll(first, 3, 1)
    found = outlook(np.stack([first, last]), [0, 15], [30.0], pixel_km=2.0).rate[0]
    for least in (10.0, 20.0, 50.0):
        area = float((last >= least).sum())
        assert area > 20 and float((found >= least).sum()) == pytest.approx(area, rel=0.1)
    assert found.max() < 1.5 * last.max()


def test_where_nobody_looks_nothing_is_decided_and_no_rain_is_put() -> None:
    first = showers(7, 128)
    pair = np.stack([first, np.roll(first, 3, 1)])
    whole = outlook(pair, [0, 15], [60.0], pixel_km=2.0)
    wide = np.full((2, 128, 512), np.nan, np.float32)
    wide[:, :, :128] = pair
    found = outlook(wide, [0, 15], [60.0], pixel_km=2.0)
    assert np.isnan(found.rate[..., 128:]).all() and not found.rain[..., 128:].any()
    for least in (0.5, 2.0):
        area = float((found.rate[..., :128] >= least).sum())
        assert area == pytest.approx(float((whole.rate >= least).sum()), rel=0.15)
    assert float(found.rain.sum()) == pytest.approx(float(whole.rain.sum()), rel=0.1)


def test_what_is_not_kept_cannot_be_asked_for() -> None:
    found = outlook(np.stack([showers(), showers()]), [0, 10], [10.0], pixel_km=2.0, keep=(0.2,))
    assert found.at_least(0.2).shape == (1, 96, 96)
    with pytest.raises(UserError, match=r"one of 0\.2"):
        found.at_least(1.0)


def test_what_lies_beyond_the_edge_is_dry_or_the_edge() -> None:
    field = np.arange(5, dtype=np.float32)[None].repeat(5, 0)
    moved = np.stack([np.zeros((5, 5)), np.full((5, 5), -2.0)]).astype(np.float32)  # to the left
    assert carried(field, moved, 0.0)[0].tolist() == [2, 3, 4, 0, 0]
    assert carried(field, moved)[0].tolist() == [2, 3, 4, 4, 4]


def test_the_decision_maximises_the_expected_intersection_over_union() -> None:
    probability = np.random.default_rng(0).beta(0.4, 1.2, (30, 30)).astype(np.float32)
    chosen = decision(probability)

    def expected(threshold: float) -> float:
        said = probability >= threshold
        return float(probability[said].sum() / (said.sum() + probability[~said & (probability > 0.01)].sum()))

    assert expected(chosen) == pytest.approx(max(expected(t) for t in np.linspace(0.02, 0.95, 187)), abs=1e-3)
    # the theory: from IoU / (1 + IoU) on
    assert chosen == pytest.approx(expected(chosen) / (1 + expected(chosen)), abs=0.02)


def test_extrapolation_beats_persistence_on_moving_showers() -> None:
    first = showers(5, 128)
    truth = np.stack([shift(first, (0, 2.5 * k), order=1, mode="grid-wrap") for k in range(1 - SEEN, 9)])
    sequence = bench.Sequence("moving", np.where(truth < 0.05, 0, truth), 15.0)
    found = bench.compared(sequence, {"ours": rivals.ours, "persistence": rivals.persistence})
    ours, still = (found[name].scores() for name in ("ours", "persistence"))
    assert ours["iou_0.2"][3] > still["iou_0.2"][3] + 0.1 and ours["fss_1"][3] > still["fss_1"][3]
    assert ours["crps"][3] < still["crps"][3] and 0 <= ours["reliability"] < 0.3 and "reliability" not in still


def test_who_cannot_forecast_an_event_has_no_row_of_it_and_no_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)

    def seldom(rates: rivals.Rates, ahead: list[float], step_minutes: float) -> rivals.Said:
        if rates[-1].mean() > 0.5:
            raise rivals.CannotForecast("no features found")
        return rivals.persistence(rates, ahead, step_minutes)

    events = [
        bench.Sequence(name, random.gamma(0.5, mean, (14, 64, 64)), 15.0) for name, mean in (("a", 4.0), ("b", 0.2))
    ]
    monkeypatch.setattr(bench, "sequences", lambda folder: iter(events))
    monkeypatch.setattr(bench, "chosen_rivals", lambda quick: {"persistence": rivals.persistence, "seldom": seldom})
    assert set(bench.compared(events[0], {"ours": rivals.ours, "seldom": seldom})) == {"ours"}
    rows = bench.run()
    means = [row.against for row in rows if row.what.startswith("mean of 2")]
    assert means and all(told.endswith("persistence") for told in means)
    assert any(row.what == "seconds a forecast, seldom" for row in rows)


def test_a_bench_folder_without_events_is_one_line(tmp_path: object) -> None:
    with pytest.raises(UserError, match="without radar events"):
        list(bench.sequences(str(tmp_path)))


def clouds(samples: int, size: int = 24, speed: int = 1) -> Windows:
    """Cold clouds of one satellite pixel's speed to the right a step, raining below their tops."""
    random = np.random.default_rng(1)
    wide = np.stack([gaussian_filter(random.normal(size=(size, 4 * size)), 2.5, mode="wrap") for _ in range(samples)])
    wide = wide / wide.std()
    times = np.stack([np.roll(wide, speed * t, axis=2)[:, :, size : 2 * size] for t in range(SEEN + LEADS)], 1)
    images = np.zeros((samples, SEEN, 11, size, size), np.float32)
    images[:, :, 4] = -times[:, :SEEN]
    inner, first = size // 6, (size - size // 6) // 2
    middle = times[:, SEEN:, first : first + inner, first : first + inner]
    rate = torch.from_numpy((middle > 0.8).astype(np.float32)).repeat_interleave(6, 2).repeat_interleave(6, 3)
    missing = torch.zeros(samples, SEEN, size, size)
    return Windows(torch.from_numpy(images), missing, rate, torch.ones_like(rate), torch.arange(samples) % 2)


def test_satellite_persistence_reads_rain_off_cold_clouds() -> None:
    batch = clouds(24)
    forecast = SatellitePersistence(TensorData(batch))(batch)
    assert forecast.shape == batch.rate.shape and torch.equal(forecast[:, 0], forecast[:, -1])
    raining = batch.rate[:, 0] > 0
    assert float(forecast[:, 0][raining].mean()) > 3 * float(forecast[:, 0][~raining].mean())


def test_satellite_rain_that_moves_with_the_clouds_is_better_an_hour_ahead() -> None:
    batch = clouds(24)
    still, moving = (kind(TensorData(batch))(batch) for kind in (SatellitePersistence, SatelliteExtrapolation))
    for lead in (3, 5):
        errors = [float((forecast[:, lead] - batch.rate[:, lead]).square().mean()) for forecast in (still, moving)]
        assert errors[1] < errors[0]
    assert torch.isfinite(moving).all() and moving.shape == batch.rate.shape


def test_radar_persistence_repeats_the_last_image() -> None:
    rate = torch.tensor([[[0.0, 0.1], [0.2, 3.0]]])
    assert persistence(rate, 3)[0, 2].tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("there", [(), ("pysteps",), ("cv2",)])
def test_pysteps_without_opencv_counts_as_not_installed(
    there: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: ModuleSpec(name, None) if name in there else None)
    assert not rivals.pysteps_installed()
    with pytest.raises(UserError, match="opencv"):
        rivals.sprog(np.stack([showers(), showers(1)]), [15.0], 15.0)
