"""The nowcast chapter of a report: truth and forecast, and a task with fewer windows."""

from __future__ import annotations

import dataclasses
import html
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fewer.core.data import batches
from fewer.core.engines.evaluate import predictor
from fewer.core.task import Predict
from fewer.report.certainty.units import Units
from fewer.report.chart import curves
from fewer.report.page import abreast, figure
from fewer.report.png import data_address
from fewer.run.load import Trained
from fewer.systems.nowcast.pictures import by_hour, film
from fewer.systems.nowcast.task.baselines.persistence import SatellitePersistence
from fewer.systems.nowcast.task.scores.scores import Counts, Scores, mean_iou, wet
from fewer.systems.nowcast.task.scores.shares import remark, wet_shares
from fewer.systems.nowcast.task.task import Nowcast

__all__ = ["rained", "shortened", "units"]

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
    lines = {}
    for name, forecast in (
        ("the network", probability),
        ("as the last image shows it, for all hours", unlearnt(batch)),
    ):
        scores = Scores(rain_mm_per_hour=rain)
        scores.add(forecast, batch.rate, batch.valid, batch.place)
        lines[name] = [((lead + 1) / 4, value) for lead, value in enumerate(scores.by_lead()["iou"])]
    raining = wet(batch.rate, rain) & (batch.valid > 0)
    one = int(raining[:, :_SOON].sum((1, 2, 3)).argmax())
    fields = [part[one].cpu().numpy() for part in (probability, raining, batch.valid)]
    said, fell = (wet_shares(rain, fields[2]) for rain in (fields[0] >= 0.5, fields[1]))
    hours = f"Truth and forecast at every hour, with the share of rain. {remark(said, fell)}"
    lead = f"IoU against lead time, {len(batch.place)} windows: the network, and what needs no learning."
    seen = "Eight hours: hits are blue, false alarms orange, misses red; grey is out of the radars' sight."
    return _plate(by_hour(*fields), hours) + abreast(
        figure(curves(lines, "hours ahead", "IoU"), lead), _plate(film(*fields), seen)
    )


def _plate(picture: bytes, caption: str) -> str:
    image = f'<img class="plate" alt="{html.escape(caption)}" src="{data_address(picture)}">'
    return figure(image, caption)


def units(task: Nowcast, predict: Predict) -> Units:
    """Test windows, as if they were independent: pixels by forecast and truth, all lead times together."""
    data = task.data("validation" if task.settings.data else "test")
    scores = Scores(rain_mm_per_hour=task.settings.rain_mm_per_hour, histograms=False)
    for index in batches(data, task.per_batch):
        batch = data.take(index)
        scores.add(predict(batch).cpu(), batch.rate, batch.valid, batch.place)
    counts = torch.stack([part.sum(1) for part in scores.counts], 1).numpy()
    records = np.concatenate([counts, scores.places.double().numpy()[:, None]], axis=1)
    observed = np.stack([records[:, 0] + records[:, 2], records[:, 4]], axis=1)
    return Units("windows", records, _figures, observed)


def _figures(records: NDArray[Any]) -> dict[str, float]:
    places = np.unique(records[:, 4])
    pooled = torch.from_numpy(np.stack([records[records[:, 4] == place, :4].sum(axis=0) for place in places]))
    total = Counts(*pooled.sum(0).unbind())
    return {"iou": mean_iou(Counts(*pooled.unbind(1))), "pod": float(total.pod()), "far": float(total.far())}


def shortened(task: Nowcast, limit: int) -> Nowcast:
    """Fewer generated windows, which are made anew: window i is the same whatever the count. Files stay as they are."""
    settings = task.settings
    if settings.data:
        return task
    train, test = min(settings.train_windows, _TRAIN), min(settings.test_windows, _TEST)
    return Nowcast(dataclasses.replace(settings, train_windows=train, test_windows=test))
