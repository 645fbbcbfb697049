"""The cell-free chapter of a report: phones on the map, and a task with fewer of them."""

from __future__ import annotations

import dataclasses

import numpy as np

from fewer.core.data import batches
from fewer.core.engines.evaluate import predictor
from fewer.core.task import Predict
from fewer.report.certainty.units import Units
from fewer.report.page import abreast, words
from fewer.run.load import Trained
from fewer.systems.cellfree.maps import LEGEND, map_of
from fewer.systems.cellfree.task.arrays import Floats
from fewer.systems.cellfree.task.selectors.trained import Predicting
from fewer.systems.cellfree.task.statistics import average_precision, calibration_error
from fewer.systems.cellfree.task.task import CellFree

__all__ = ["served", "shortened", "units"]

_PHONES, _AT_ONCE = 2, 2000
_LOOKED_AT, _TOGETHER = 200, 3  # phones that several access points serve say more


def served(run: Trained, attack: str) -> str:
    """Two phones on the map: the cluster of their master, who the network lets serve them and who should."""
    task = run.task
    assert isinstance(task, CellFree)
    phones = task.world.survey(_LOOKED_AT, part="test")
    shared = [int(n) for n in np.argsort(phones.serving < _TOGETHER, kind="stable")[:_PHONES]]
    selector = Predicting(task, predictor(task, run.modules))
    maps = [
        f"<figure>{map_of(task.world, phones.phones[n], selector.select(int(phones.master[n]), phones.rsrp_db[n]))}"
        "</figure>"
        for n in shared
    ]
    caption = (
        f"The first phones of the test split that at least {_TOGETHER} access points should serve. Lines lead to those "
        f"that the network chose from {task.settings.measured} reports; the darker the ground, the better the master "
        "is heard there."
    )
    return words(caption) + LEGEND + abreast(*maps)


def units(task: CellFree, predict: Predict) -> Units:
    """Test phones: what each candidate was given and whether it serves, the master left out."""
    survey, data = task.survey("test"), task.data("test")
    found = np.concatenate([predict(data.take(index)).double().cpu().numpy() for index in batches(data, _AT_ONCE)])
    serves = survey.serves(task.settings.threshold_db)[:, 1:]
    beyond = survey.serving - 1 - serves.sum(axis=1)  # serving, but no candidate
    records = np.stack([found[:, 1:], serves, np.broadcast_to(beyond[:, None], serves.shape)], axis=1)
    return Units("phones", records, _figures, survey.phones)


def _figures(records: Floats) -> dict[str, float]:
    scores, serves, beyond = records[:, 0], records[:, 1] > 0.5, records[:, 2, 0]
    chosen = scores >= 0.5
    hits = (chosen & serves).sum()
    return {
        "other_average_precision": average_precision(scores, serves),
        "other_precision": float(hits / max(chosen.sum(), 1)),
        "other_recall": float(hits / max(serves.sum() + beyond.sum(), 1)),
        "calibration_error": calibration_error(scores, serves),
    }


def shortened(task: CellFree, limit: int) -> CellFree:
    """The same world with at most `limit` test phones."""
    settings = dataclasses.replace(task.settings, test_phones=min(task.settings.test_phones, limit))
    return CellFree(settings, world=task.world, survey=task.survey("train"))
