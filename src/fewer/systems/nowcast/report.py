"""The nowcast chapter of a report: truth and forecast, and a task with fewer windows."""

from __future__ import annotations

import dataclasses

import torch

from fewer.core.engines.evaluate import predictor
from fewer.report.png import data_address
from fewer.run.load import Trained
from fewer.systems.nowcast.pictures import by_hour, by_lead, film
from fewer.systems.nowcast.task.baselines.persistence import SatellitePersistence
from fewer.systems.nowcast.task.scores.scores import Scores, wet
from fewer.systems.nowcast.task.scores.shares import remark, wet_shares
from fewer.systems.nowcast.task.task import Nowcast

__all__ = ["rained", "shortened"]

_SHOWN_FROM = 24  # windows, of which the one with most rain soon is shown
_TABLE = 96  # training windows from which cloud tops are read as rain
_SOON = 16  # lead times: rain of the first four hours, which can be forecast, chooses the window
_TRAIN, _TEST = 16, 12  # windows of a shortened task


def rained(run: Trained, attack: str) -> str:
    """A test window with much rain soon: truth and forecast hour by hour, the score by lead time, and a film."""
    task = run.task
    assert isinstance(task, Nowcast)
    # the competition's own test windows have no truth
    data = task.data("validation" if task.settings.data else "test")
    batch = data.take(torch.arange(min(_SHOWN_FROM, len(data))))
    rain = task.settings.rain_mm_per_hour
    probability = predictor(task, run.modules)(batch)
    unlearnt = SatellitePersistence(task.data("train"), rain_mm_per_hour=rain, limit=_TABLE)
    curves = {}
    for name, forecast in (
        ("the network", probability),
        ("as the last image shows it, for all hours", unlearnt(batch)),
    ):
        scores = Scores(rain_mm_per_hour=rain)
        scores.add(forecast, batch.rate, batch.valid, batch.place)
        curves[name] = scores.by_lead()["iou"]
    raining = wet(batch.rate, rain) & (batch.valid > 0)
    one = int(raining[:, :_SOON].sum((1, 2, 3)).argmax())
    fields = [part[one].cpu().numpy() for part in (probability, raining, batch.valid)]
    said, fell = (wet_shares(rain, fields[2]) for rain in (fields[0] >= 0.5, fields[1]))
    captions = (
        f"Truth and forecast at every hour, with the share of rain. {remark(said, fell)}",
        f"IoU against lead time, {len(batch.place)} windows: the network, and what needs no learning.",
        "Eight hours: hits are blue, false alarms orange, misses red; grey is out of the radars' sight.",
    )
    return "".join(
        f'<figure><img class="plate" alt="{caption}" src="{data_address(picture)}">'
        f"<figcaption>{caption}</figcaption></figure>"
        for caption, picture in zip(captions, [by_hour(*fields), by_lead(curves), film(*fields)])
    )


def shortened(task: Nowcast, limit: int) -> Nowcast:
    """Fewer generated windows, which are made anew: window i is the same whatever the count. Files stay as they are."""
    settings = task.settings
    if settings.data:
        return task
    train, test = min(settings.train_windows, _TRAIN), min(settings.test_windows, _TEST)
    return Nowcast(dataclasses.replace(settings, train_windows=train, test_windows=test))
