"""How long rain lives, how it is patched, and what the bench of radar keeps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from fewer.core.errors import UserError
from fewer.systems.nowcast.bench import radar as bench
from fewer.systems.nowcast.bench.kept import Kept
from fewer.systems.nowcast.task.baselines.extrapolation import recent, sight
from fewer.systems.nowcast.task.baselines.motion import Field
from fewer.systems.nowcast.task.baselines.pace import Pace, pace
from fewer.systems.nowcast.task.baselines.surroundings import SCALES_KM, strength

STILL = np.zeros((2, 128, 128), np.float32)


def changing(minutes: float, seed: int = 0) -> Field:
    """Three images, 15 minutes apart: fine noise whose correlation falls to 1/e in so many minutes."""
    random = np.random.default_rng(seed)
    left = np.exp(-15 / minutes)
    images = [random.normal(size=(128, 128))]
    for _ in range(2):
        images.append(left * images[-1] + np.sqrt(1 - left**2) * random.normal(size=(128, 128)))
    return np.stack(images).astype(np.float32)


@pytest.mark.parametrize("minutes", [10.0, 30.0, 90.0])
def test_how_long_rain_lives_is_read_off_its_images(minutes: float) -> None:
    images = changing(minutes)
    found = pace(images, np.ones(images.shape, np.bool_), STILL, [30.0, 15.0, 0.0], 2.0)
    assert found.minutes[:3] == pytest.approx(np.full(3, minutes), rel=0.3)
    assert found.remembered(minutes)[0] == pytest.approx(np.exp(-1), abs=0.15)


def test_rain_that_only_moves_is_remembered_and_what_is_unknown_does_not_matter() -> None:
    wide = np.clip(gaussian_filter(np.random.default_rng(1).normal(size=(128, 160)), 3) * 12, 0, None)
    images = np.stack([wide[:, 16 - 2 * k : 144 - 2 * k] for k in range(3)]).astype(np.float32)
    moving = np.stack([np.zeros((128, 128)), np.full((128, 128), 2 / 15)]).astype(np.float32)
    known = np.ones(images.shape, np.bool_)
    followed = pace(images, known, moving, [30.0, 15.0, 0.0], 2.0).minutes
    still = pace(images, known, STILL, [30.0, 15.0, 0.0], 2.0).minutes
    assert (followed[:3] > 5 * still[:3]).all()
    known[1, 40:60] = False
    spoiled = np.where(known, images, 50.0).astype(np.float32)
    assert pace(spoiled, known, moving, [30.0, 15.0, 0.0], 2.0).minutes[1] > 5 * still[1]
    assert np.isfinite(pace(images, np.zeros(images.shape, np.bool_), moving, [30.0, 15.0, 0.0], 2.0).minutes).all()


def test_bands_add_up_to_the_image_and_are_forgotten_one_by_one() -> None:
    slow = Pace(np.geomspace(10, 300, len(SCALES_KM)).astype(np.float32))
    assert slow.weights(0.0) == pytest.approx([1, *np.zeros(len(SCALES_KM))], abs=1e-6)
    assert slow.weights(45.0).sum() == pytest.approx(1, abs=1e-6)
    assert slow.weights(1e6) == pytest.approx([*np.zeros(len(SCALES_KM)), 1], abs=1e-6)
    assert (np.diff(slow.remembered(30.0)) > 0).all()


def test_three_images_are_compared_where_there_are_three_a_quarter_of_an_hour_apart() -> None:
    assert recent([0, 5, 10, 15, 20, 25, 30]) == [0, 3, 6]
    assert recent([0, 15]) == [0, 1]
    assert recent([0, 50, 60]) == [1, 2]


def test_uneven_steps_find_the_motion_of_even_ones() -> None:
    wide = np.clip(gaussian_filter(np.random.default_rng(4).normal(size=(96, 160)), 4) * 20, 0, None)
    at = [wide[:, 40 - k : 136 - k].astype(np.float32) for k in range(13)]  # a pixel to the right in 5 minutes
    found = sight(np.stack([at[0], at[2], at[6]]), [0.0, 10.0, 30.0], 4.0).moving[:, 30:66, 30:66].mean((1, 2))
    assert found == pytest.approx([0, 0.2], abs=0.02)
    assert strength(np.array([0.1])) == pytest.approx(np.log(2))


def test_scores_that_were_kept_are_not_computed_again_unless_the_images_or_the_method_changed(tmp_path: Path) -> None:
    path, made = str(tmp_path / "kept.json"), []

    def make() -> dict[str, float]:
        made.append(1)
        return {"crps": 0.5}

    rates = np.ones((2, 3, 3), np.float32)
    for _ in range(2):
        assert Kept(path).of("event", "ours", rates, "a", make)["crps"] == 0.5
    assert len(made) == 1 and json.loads(Path(path).read_text())["events"]["event"]["ours"]["crps"] == 0.5
    Kept(path).of("event", "ours", 2 * rates, "a", make)
    Kept(path).of("event", "ours", 2 * rates, "b", make)
    assert len(made) == 3
    Path(path).write_text("{}")
    with pytest.raises(UserError, match=r"kept\.json"):
        Kept(path)


def test_the_bench_judges_events_that_nothing_was_fitted_on_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rain = np.stack([np.roll(gaussian_filter(np.random.default_rng(5).gamma(0.3, 9, (64, 64)), 2), 2 * k, 1)
                     for k in range(16)])  # fmt: skip
    for name in ("new", "mine"):
        np.savez(tmp_path / f"{name}.npz", rain=rain.astype(np.float16), step_min=15.0, res_km=2.0)
    monkeypatch.setenv("FEWER_RADAR", str(tmp_path))
    monkeypatch.setenv("FEWER_RADAR_TABLE", str(tmp_path / "table.json"))
    monkeypatch.setattr(bench, "fitted_on", lambda: ("mine",))
    monkeypatch.setattr(bench, "pysteps_installed", lambda: False)
    rows = {row.what: row for row in bench.run()}
    assert any(what.startswith("new, 5 starts, held out, IoU at 0.2 mm/h") for what in rows)
    assert any(what.startswith("mine, 5 starts, fitted, CRPS") for what in rows)
    assert "1 held-out events, 60 min ahead, FSS at 1 mm/h" in rows and "seconds a forecast, persistence" in rows

    def never(*_: object) -> None:
        raise AssertionError("scores were kept")

    monkeypatch.setattr(bench, "compared", never)
    again = {row.what: row for row in bench.run()}
    assert {k: v for k, v in again.items() if "seconds" not in k} == {
        k: v for k, v in rows.items() if "seconds" not in k
    }
