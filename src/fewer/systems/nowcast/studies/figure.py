"""Figure 1 of the nowcast paper on generated weather: a rain front hour by hour, and every model by lead time."""

from __future__ import annotations

import numpy as np
import torch

from fewer.ensemble.combine import combine
from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.systems.nowcast.pictures import by_hour, by_lead, film
from fewer.systems.nowcast.studies.described import commands, titled
from fewer.systems.nowcast.studies.members import MEMBERS, VOTERS
from fewer.systems.nowcast.studies.pieces import BASELINES, truth
from fewer.systems.nowcast.studies.scored.judged import Judged
from fewer.systems.nowcast.studies.where import available, where
from fewer.systems.nowcast.task.scores.shares import wet_shares

__all__ = ["fig1"]

REGION, YEAR = "roxi_0004", 2020  # the paper's


def fig1(order: Order) -> Result:
    """The vote's forecast of the window of the paper's region-year whose rain changes most, and IoU by lead time."""
    place = where(order)
    names = available(order, place)
    judged = Judged(place, "test")
    voters = [name for name in VOTERS if name in names] or names
    vote = combine(judged.task, [judged.decision(name) for name in voters], "majority")
    fallen = truth("test", place)
    mine = [number for number, name in enumerate(judged.task.regions) if name == f"{YEAR}/{REGION}"]
    window = _changing(fallen.raining, np.isin(fallen.place, mine))
    batch = judged.task.kept["test"].take(torch.tensor([window]))
    probability = vote(batch)[0].cpu().numpy()
    fields = probability, fallen.raining[window], fallen.valid[window]
    weather = "the competition's files" if place.files else "generated weather"
    title = f"{REGION} {YEAR} ({weather}), the vote of {len(voters)} models: hours ahead and share of rain"
    shown = {"forecast": wet_shares(probability >= 0.5, fields[2]), "observed": wet_shares(*fields[1:])}
    scores = judged.scored(vote)
    curves = {"majority": scores.by_lead()["iou"]}
    for name in [*(name for name in BASELINES if judged.piece(name)), *names]:
        curves[name] = judged.at_choice(name).by_lead()["iou"]
    hours = range(3, len(curves["majority"]), 4)
    rows = [
        [MEMBERS[name].title if name in MEMBERS else name, *[f"{values[k]:.3f}" for k in hours]]
        for name, values in curves.items()
    ]
    return Result(
        title=titled(order, place, "test"),
        columns=["forecast", *[f"{(k + 1) // 4} h" for k in hours]],
        rows=rows,
        notes=[
            *([] if place.files else ["The region's name stands for its climate, not for a real day."]),
            "Thresholds are chosen on validation windows. The paper's figure shows one window, without scores.",
            "The window is the one of the paper's region-year whose rain changes most between the first and the last "
            "hour; no forecast was looked at.",
        ],
        figures={
            "nowcast-fig1.png": by_hour(*fields, title=title),
            "nowcast-leads.png": by_lead(curves),
            "nowcast-fig1.gif": film(*fields),
        },
        details={"curves": curves, "window": window, "shown": shown, "vote": scores.metrics(), "members": voters},
        commands=commands(order),
    )


def _changing(raining: np.ndarray, mine: np.ndarray) -> int:  # type: ignore[type-arg]
    """The window, of mine if there are any, in which the share of rain changes most from first to last hour."""
    shares = raining.mean((2, 3))
    change = np.abs(shares[:, :4].mean(1) - shares[:, -4:].mean(1))
    return int(np.where(mine if mine.any() else True, change, -1).argmax())
