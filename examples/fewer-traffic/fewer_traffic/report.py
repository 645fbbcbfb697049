"""The picture of this system's chapter: a week of the test split, counted and forecast."""

from __future__ import annotations

import torch

from fewer import Trained, curves, figure, predictor

__all__ = ["week"]

_SHOWN = 7 * 24


def week(run: Trained, attack: str) -> str:
    """Two lines: what was counted, and what the network said an hour before."""
    batch = run.task.data("test").take(torch.arange(_SHOWN))
    said = predictor(run.task, run.modules)(batch).flatten().tolist()
    lines = {
        "counted": list(enumerate(batch.y.flatten().tolist())),
        "forecast an hour before": list(enumerate(said)),
    }
    return figure(curves(lines, "hour", "hundreds of cars"), "The first week of the test split.")
