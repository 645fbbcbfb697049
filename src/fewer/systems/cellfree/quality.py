"""How good a choice of access points is, at many places at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewer.packs.file.tensors import Array

__all__ = ["choice_quality"]


def choice_quality(gap_db: Array, chosen: Array, gain_db: Array, *, threshold_db: float, side: int) -> dict[str, Any]:
    """Of places in rows of `side`: missed and needless access points, and the share of the ideal choice's signal.

    `gap_db` and `chosen` are (places, candidates), the master first; `gain_db` is (places, audible) of everyone. Only
    access points that should serve count as signal: whoever chooses everybody gains nothing by it.
    """
    deserves = gap_db < threshold_db
    below = gain_db.max(axis=1, keepdims=True) - gain_db
    everyone = (below < threshold_db).sum(axis=1)
    ideal = np.where(below < threshold_db, 10 ** (-below / 10), 0).sum(axis=1)
    caught = np.where(chosen & deserves, 10 ** (-gap_db / 10), 0).sum(axis=1)
    found, needless = (chosen & deserves).sum(axis=1), (chosen & ~deserves).sum(axis=1)
    missed = np.maximum(everyone - found, 0)
    return {
        "side": side,
        "missed": missed.reshape(side, side).tolist(),  # rows go with y
        "needless": needless.reshape(side, side).tolist(),
        "right": round(float(((missed == 0) & (needless == 0)).mean()), 4),
        "signal": round(float(np.minimum(caught / ideal, 1).mean()), 4),
        "master_signal": round(float((1 / ideal).mean()), 4),
    }
