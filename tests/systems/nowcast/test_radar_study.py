"""The study from radar to radar: who learns from what, and the shipped forecasters beside their rivals."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from fewer import zoo
from fewer.core.errors import UserError
from fewer.packs.pack import load
from fewer.studies.order import Order
from fewer.studies.pieces import silent
from fewer.systems.nowcast.showcase import SHIPPED, Showcase
from fewer.systems.nowcast.studies import radar
from fewer.systems.nowcast.task.generated.windows import generated


def events(folder: Path) -> Path:
    """Three short events of rain, 5 minutes apart at 2 km, and one whose steps do not fit."""
    folder.mkdir()
    rain = np.random.default_rng(0).gamma(0.3, 2.0, (48, 26, 27)).astype(np.float16)
    for name in ("one", "two", "three"):
        np.savez(folder / f"{name}.npz", rain=rain, step_min=5.0, res_km=2.0)
    np.savez(folder / "uneven.npz", rain=rain, step_min=10.0, res_km=2.0)
    return folder


def test_a_model_never_learns_from_the_event_that_it_is_judged_on(tmp_path: Path) -> None:
    words = ("size=24", "steps=1", "generated=1", "batch=1", "width=2", "device=cpu")
    order = Order("nowcast/radar", "full", tmp_path / "out", silent, words, str(events(tmp_path / "data")))
    pieces = radar.catalogue(order).every
    assert set(pieces) == {"weather", "without-one", "without-two", "without-three"}
    pieces["without-two"].make()
    with (tmp_path / "out/radar/files-two/events.csv").open() as file:
        splits = {(line["seen"].split("-")[0], line["split"]) for line in csv.DictReader(file)}
    assert ("two", "test") in splits and ("two", "train") not in splits
    assert {("one", "train"), ("three", "train"), ("train", "train"), ("validation", "validation")} < splits
    found = radar.radar(order)
    assert {row[0] for row in found.rows} == {"two", "mean of events"}
    assert {row[1] for row in found.rows} >= {"learned", "extrapolation"}
    assert radar.ahead_of_all({"details": found.details})[0].startswith("From 60 minutes on the learned model has")


def test_a_study_of_radar_without_files_asks_for_them(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--data"):
        radar.catalogue(Order("nowcast/radar", "full", tmp_path, silent)).every["weather"].make()


def test_weather_of_a_gpu_is_refused_in_one_line_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="without CUDA"):
        generated("test", count=1, size=24, device="cuda")


@pytest.mark.parametrize("name", ["nowcast-80", "nowcast-90"])
def test_an_hour_ahead_the_shipped_forecasters_are_ahead_of_both_rivals_in_five_of_six_windows(name: str) -> None:
    shown = Showcase.read(SHIPPED)
    said = load(zoo.path(name)).predict(
        satellite=shown.satellite.astype(np.float32), missing=shown.missing.astype(np.float32)
    )
    ours = shown.iou(said >= 0.5, 3)
    theirs = [shown.iou(rain, 3) for rain in shown.rivals.values()]
    assert len(theirs) == 2 and len(ours) == 6
    assert sum(mine > max(others) for mine, *others in zip(ours, *theirs)) >= 5
