"""How sure a score is: a block bootstrap over windows, region-year by region-year.

Windows that follow each other share weather, so whole blocks of consecutive windows are drawn again, with repetition,
within each region-year. Comparing two forecasts, the same blocks are drawn for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.scores.scores import Counts, Scores

__all__ = ["Interval", "average", "difference", "interval", "pooled_difference"]


class Interval(NamedTuple):
    """A figure and the range that holds 95 % of its bootstrap draws."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def interval(scores: Scores, *, block: int = 1, draws: int = 2000, seed: int = 0) -> Interval:
    """Of the competition's mean IoU; `block`: windows that belong together, 1 where they do not overlap in time."""
    drawn = _drawn(scores.counts, scores.places, _picks(scores.places, block, draws, seed))
    return Interval(scores.metrics()["iou"], *_ends(drawn))


def difference(first: Scores, second: Scores, *, block: int = 1, draws: int = 2000, seed: int = 0) -> Interval:
    """Of the first's mean IoU above the second's, on the same windows in the same order."""
    if not torch.equal(first.places, second.places):
        raise UserError("forecasts of different windows", "the same windows in the same order")
    picks = _picks(first.places, block, draws, seed)
    drawn = _drawn(first.counts, first.places, picks) - _drawn(second.counts, second.places, picks)
    return Interval(first.metrics()["iou"] - second.metrics()["iou"], *_ends(drawn))


def average(values: Tensor, places: Tensor, *, draws: int = 2000, seed: int = 0) -> Interval:
    """Of the mean over windows of a number that each has, such as a paired difference."""
    picks = _picks(places, 1, draws, seed)
    drawn = torch.stack([often @ values[places == place].double() for place, often in picks.items()]).sum(0)
    return Interval(float(values.double().mean()), *_ends(drawn / len(values)))


def pooled_difference(
    first: Tensor,
    second: Tensor,
    places: Tensor,
    figure: Callable[[Tensor], Tensor],
    *,
    draws: int = 2000,
    seed: int = 0,
) -> Interval:
    """Of a figure of what the first's windows add up to, (..., *) of (windows, *), above the same of the second's."""
    picks = _picks(places, 1, draws, seed)

    def drawn(values: Tensor) -> Tensor:
        flat = values.double().flatten(1)
        sums = torch.stack([often @ flat[places == place] for place, often in picks.items()]).sum(0)
        return figure(sums.unflatten(1, values.shape[1:]))

    value = float(figure(first.double().sum(0)) - figure(second.double().sum(0)))
    return Interval(value, *_ends(drawn(first) - drawn(second)))


def _picks(places: Tensor, block: int, draws: int, seed: int) -> dict[int, Tensor]:
    """Per place how often each of its windows is drawn, (draws, windows)."""
    if block < 1 or draws < 1:
        raise UserError(f"{draws} draws of blocks of {block}", "both 1 or more")
    random = torch.Generator().manual_seed(seed)
    found = {}
    for place in places.unique().tolist():
        windows = int((places == place).sum())
        blocks = -(-windows // block)
        chosen = torch.randint(blocks, (draws, blocks), generator=random)
        often = torch.zeros(draws, blocks, dtype=torch.float64).scatter_add_(
            1, chosen, torch.ones_like(chosen, dtype=torch.float64)
        )
        found[place] = often.repeat_interleave(block, dim=1)[:, :windows]
    return found


def _drawn(counts: Counts, places: Tensor, picks: dict[int, Tensor]) -> Tensor:
    """(draws,): the mean over places of the IoU of each draw; a place without rain in a draw is left out of it."""
    sums = counts.sum(1)  # (samples,) each
    total = rainy = torch.zeros(len(next(iter(picks.values()))), dtype=torch.float64)
    for place, often in picks.items():
        pooled = Counts(*[often @ part[places == place] for part in sums])
        some = (pooled.hits + pooled.false_alarms + pooled.misses > 0).double()
        total, rainy = total + some * pooled.iou(), rainy + some
    return torch.where(rainy > 0, total / rainy.clamp(min=1), 1.0)


def _ends(drawn: Tensor) -> tuple[float, float]:
    low, high = torch.quantile(drawn, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return low, high
