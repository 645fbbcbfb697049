"""Scores of a radar forecast by lead time, each of the output made for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fewer.systems.nowcast.bench.rivals import Said
from fewer.systems.nowcast.task.baselines.prognosis import THRESHOLDS
from fewer.systems.nowcast.task.scores.neighbourhood import Neighbourhood

__all__ = ["SCORED", "Means", "Skill", "means"]

SCORED = (0.2, 1.0, 5.0)  # mm/h
_ACROSS = 11  # pixels of 2 km: 22 km
_BINS = 10
# widths of rate that each threshold stands for: CRPS is the integral of Brier scores over rates
_EDGES = np.concatenate([[0.0], (np.array(THRESHOLDS[1:]) + np.array(THRESHOLDS[:-1])) / 2, [15.0]])
_WIDTHS = np.diff(_EDGES)


class Skill:
    """Pooled over starts."""

    def __init__(self, ahead: Sequence[float]) -> None:
        leads = len(ahead)
        self.minutes = list(ahead)
        self.counts = {least: np.zeros((2, leads)) for least in SCORED}  # both, either
        self.near = {least: Neighbourhood(_ACROSS) for least in SCORED}
        self.squares, self.pixels = np.zeros((len(THRESHOLDS), leads)), np.zeros(leads)
        self.bins = np.zeros((3, _BINS))  # pixels, probabilities, rain
        self.said_probabilities = False

    def add(self, said: Said, truth: NDArray[Any]) -> None:
        """One forecast and what fell, (leads, height, width), NaN where no radar looked."""
        seen = np.isfinite(truth)
        fell = np.nan_to_num(truth)
        for least in SCORED:
            wet, called = (fell >= least) & seen, said.decided[least] & seen
            self.counts[least] += np.stack([(wet & called).sum((1, 2)), (wet | called).sum((1, 2))])
            fields = (torch.from_numpy(one)[None] for one in (said.rate >= least, wet, seen))
            self.near[least].add(*fields)
        for k, least in enumerate(THRESHOLDS):
            share = said.exceedance[k] if said.exceedance is not None else (said.rate >= least).astype(np.float32)
            self.squares[k] += np.where(seen, (share - (fell >= least)) ** 2, 0).sum((1, 2), dtype=np.float64)
        self.pixels += seen.sum((1, 2))
        if said.exceedance is not None:
            self.said_probabilities = True
            self._file(said.exceedance[THRESHOLDS.index(0.2)][seen], fell[seen] >= THRESHOLDS[1])

    def _file(self, share: NDArray[Any], rained: NDArray[np.bool_]) -> None:
        place = np.clip((share * _BINS).astype(np.int64), 0, _BINS - 1)
        for row, weight in zip(self.bins, (None, share, rained)):
            row += np.bincount(place, None if weight is None else weight.astype(np.float64), _BINS)

    def scores(self) -> dict[str, Any]:
        """By lead time."""
        found: dict[str, Any] = {"minutes": self.minutes}
        for least in SCORED:
            both, either = self.counts[least]
            found[f"iou_{least:g}"] = [float(x) for x in np.where(either > 0, both / np.maximum(either, 1), np.nan)]
            found[f"fss_{least:g}"] = self.near[least].by_lead().tolist()
        brier = self.squares / np.maximum(self.pixels, 1)
        found["crps"] = (_WIDTHS @ brier).tolist()
        if self.said_probabilities:
            count, given, rained = self.bins
            found["reliability"] = float(np.abs(given - rained).sum() / max(count.sum(), 1))
            found["reliability_bins"] = [
                [round(float(g / c), 4), round(float(r / c), 4), int(c)] for c, g, r in self.bins.T if c
            ]
        return found


Means = dict[str, dict[str, float]]  # by method and score


def means(scores: Mapping[str, Any]) -> dict[str, float]:
    """Over lead times; a lead time without rain of a strength in forecast or truth is left out."""
    found = {}
    for key, value in scores.items():
        if key in ("minutes", "of", "reliability_bins"):
            continue
        found[key] = float(np.nanmean(value)) if np.isfinite(np.atleast_1d(value)).any() else 0.0
    return found
