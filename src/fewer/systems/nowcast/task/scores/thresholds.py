"""From which probability on it is rain: chosen on validation windows, one threshold for all lead times or one each.

The default of one half is best only by luck: for probabilities that are right, the best threshold for IoU is
IoU / (1 + IoU), and the IoU falls with lead time. Everything here is read off the histograms that `Scores` keeps, so
trying fifty thresholds costs no further pass over the forecasts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.scores.scores import LEVELS, Counts, Scores, mean_iou

__all__ = ["HIGHEST", "LOWEST", "BestCheckpoint", "choose", "counts_at", "sweep"]

LOWEST, HIGHEST = 0.2, 0.7  # what the paper tried
_PASSES = 4


class BestCheckpoint(NamedTuple):
    """Thresholds to give to `Scores(decision=...)`, and the mean IoU over region-years that they had where chosen."""

    thresholds: list[float]  # one, or one a lead time
    iou: float


def counts_at(scores: Scores) -> Counts:
    """(LEVELS, places, leads) each: valid pixels by forecast and truth if rain began at level / 100."""
    if not scores.histograms:
        raise UserError("thresholds from no forecasts", "at least one window to choose on")
    levels = torch.stack([scores.histograms[place] for place in sorted(scores.histograms)]).double()
    dry, rain = levels.unbind(2)  # (places, leads, LEVELS)
    false_alarms, hits = (part.flip(-1).cumsum(-1).flip(-1).movedim(-1, 0) for part in (dry, rain))
    return Counts(hits, false_alarms, rain.sum(-1) - hits, dry.sum(-1) - false_alarms)


def sweep(scores: Scores, lowest: float = LOWEST, highest: float = HIGHEST) -> list[tuple[float, float]]:
    """Each threshold in steps of 0.01 with the mean IoU over region-years it would have."""
    pooled = counts_at(scores).sum(-1)
    steps = _steps(lowest, highest)
    return [(k / LEVELS, mean_iou(Counts(*[part[k] for part in pooled]))) for k in steps]


def choose(
    scores: Scores, *, per_lead: bool = False, lowest: float = LOWEST, highest: float = HIGHEST
) -> BestCheckpoint:  # fmt: skip
    """The threshold with the largest mean IoU over region-years; the one nearest to 0.5 among equals.

    `per_lead` starts there and lets one lead time after the other move where the whole gains: pooled over lead times,
    the IoU does not fall apart into lead times, so each is not simply given its own best.
    """
    tried = sweep(scores, lowest, highest)
    best = max(tried, key=lambda pair: (round(pair[1], 12), -abs(pair[0] - 0.5)))
    if not per_lead:
        return BestCheckpoint([best[0]], best[1])
    counts = torch.stack(counts_at(scores))  # (4, LEVELS, places, leads)
    chosen = torch.full((counts.shape[-1],), round(best[0] * LEVELS))
    iou = _climb_(counts, chosen, torch.tensor(_steps(lowest, highest)))
    return BestCheckpoint([k / LEVELS for k in chosen.tolist()], iou)


def _climb_(counts: Tensor, chosen: Tensor, steps: Tensor) -> float:
    """Move each lead time's level to where the mean over places is largest, until none moves; the mean reached."""
    each = torch.stack([counts[:, level, :, lead] for lead, level in enumerate(chosen.tolist())], -1)
    reached = mean_iou(Counts(*each.sum(-1)))
    for _ in range(_PASSES):
        before = chosen.clone()
        for lead in range(len(chosen)):
            others = each.sum(-1) - each[..., lead]  # (4, places)
            found = [mean_iou(Counts(*(others + counts[:, k, :, lead]))) for k in steps.tolist()]
            best = max(range(len(found)), key=found.__getitem__)
            if found[best] > reached + 1e-12:
                reached, chosen[lead] = found[best], steps[best]
                each[..., lead] = counts[:, int(steps[best]), :, lead]
        if bool((chosen == before).all()):
            break
    return reached


def _steps(lowest: float, highest: float) -> list[int]:
    if not 0 < lowest <= highest < 1:
        raise UserError(f"thresholds from {lowest} to {highest}", "probabilities between 0 and 1, the lower first")
    return list(range(round(lowest * LEVELS), round(highest * LEVELS) + 1))
