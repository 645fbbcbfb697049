"""Pictures of forecasts, and the report's."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fewer.core.engines.evaluate import predictor
from fewer.run.load import Trained
from fewer.systems.nowcast.pictures import by_hour, by_lead, film, leading
from fewer.systems.nowcast.report import rained
from fewer.systems.nowcast.task.scores.shares import remark, wet_shares
from fewer.systems.nowcast.task.settings import Settings
from fewer.systems.nowcast.task.task import Nowcast
from fewer.systems.nowcast.task.windows import LEADS


def fields() -> list[np.ndarray]:
    probability = np.zeros((LEADS, 4, 4), np.float32)
    raining, valid = np.zeros((LEADS, 4, 4)), np.ones((LEADS, 4, 4))
    probability[:, 0, :2] = 0.8  # a hit and a false alarm
    raining[:, 0, 0] = raining[:, 1, 0] = 1  # a hit and a miss
    valid[:, 3, 3] = 0
    return [probability, raining, valid]


def test_the_film_shows_hits_false_alarms_misses_and_what_nobody_saw() -> None:
    content = film(*fields(), side=64)
    picture = Image.open(io.BytesIO(content))
    assert picture.n_frames == LEADS and picture.size == (64, 64 + 6)
    pixels = np.asarray(picture.convert("RGB"))
    hit, false_alarm, miss, unseen, dry = pixels[0, 0], pixels[0, 20], pixels[20, 0], pixels[60, 60], pixels[60, 0]
    assert len({tuple(map(int, colour)) for colour in (hit, false_alarm, miss, unseen, dry)}) == 5
    assert tuple(hit) == (31, 111, 178) and tuple(miss) == (200, 40, 60)
    assert len(content) < 20_000


def test_figures_are_pictures_of_some_size() -> None:
    curves = {"one": [0.5] * LEADS, "two": [0.4] * LEADS}
    for content in (by_hour(*fields(), title="a window"), by_lead(curves)):
        with Image.open(io.BytesIO(content)) as picture:
            assert picture.format == "PNG" and min(picture.size) > 200


def test_of_many_lines_those_that_lead_at_some_time_are_named() -> None:
    early, late = [0.9] * 4 + [0.1] * (LEADS - 4), [0.1] * 4 + [0.8] * (LEADS - 4)
    others = {f"other {number}": [0.2] * LEADS for number in range(20)}
    assert leading({**others, "late": late, "early": early}) == ["late", "early"]
    assert leading({"one": early, "two": [0.0] * LEADS}) == ["one", "two"]


def test_a_forecast_of_rain_everywhere_is_remarked_upon() -> None:
    probability, raining, valid = np.ones((LEADS, 4, 4)), np.zeros((LEADS, 4, 4)), np.ones((LEADS, 4, 4))
    raining[:8, :2] = 1  # half of the area for two hours
    valid[:, 3, 3] = 0
    said, fell = wet_shares(probability >= 0.5, valid), wet_shares(raining, valid)
    assert said == [1.0] * 8 and fell == pytest.approx([8 / 15] * 2 + [0.0] * 6)
    line = remark(said, fell)
    assert line.startswith("The forecast says rain everywhere at every hour; it fell on 53, 53, 0, 0, 0, 0, 0, 0 %")
    assert line.endswith("too much area at 8 and too little at 0 of 8 hours.")
    assert remark([0.0] * 8, fell).startswith("The forecast says no rain anywhere at any hour")
    assert "on 100, 53, 0, 0, 0, 0, 0, 0 % of the area" in remark([1.0, *fell[1:]], fell)


def test_the_report_shows_a_run_of_the_task(tmp_path: Path) -> None:
    from fewer.core.engines.state import fresh_modules
    from fewer.run.job import Job

    words = ("size=24", "width=2", "train_windows=2", "validation_windows=2", "test_windows=3")
    task = Nowcast(Settings(size=24, width=2, train_windows=2, validation_windows=2, test_windows=3))
    modules = fresh_modules(task, 0)
    html = rained(Trained(tmp_path, Job("nowcast", words), task, modules, {}, {}), "")
    assert html.count("<figure>") == 3 and html.count("data:image/gif") == 1 and html.count("data:image/png") == 1
    assert html.count("<svg") == 1  # scores by lead time, with values under the pointer
    assert "3 windows" in html and "The forecast says" in html
    assert torch.isfinite(predictor(task, modules)(task.data("test").take(torch.arange(1)))).all()
