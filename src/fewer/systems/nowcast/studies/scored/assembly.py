"""Forecasts that pieces left, judged and combined: the task on recorded windows, so that shared methods apply.

`Recorded` is the nowcast task whose batches carry the windows' numbers where images would be; a member looks its
forecast up by them. Ensembles are then `combine` of such members, as for any other task.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from fewer.core.data import batches
from fewer.core.task import Data, Predict
from fewer.systems.nowcast.studies.pieces import STEPS, Truth, levels, record, truth
from fewer.systems.nowcast.studies.place import JUDGED, Place
from fewer.systems.nowcast.task.scores.scores import Counts, Scores, mean_iou
from fewer.systems.nowcast.task.scores.thresholds import LOWEST, BestCheckpoint, choose
from fewer.systems.nowcast.task.task import Nowcast
from fewer.systems.nowcast.task.windows import LEADS, Windows

__all__ = ["Recorded", "by_year", "decided", "recalled", "scored", "threshold"]

_NEAR, _FAR = 1 << 20, 1 << 24  # pixels of all lead times at once: what a CPU's cache holds, what fills a GPU


class _Fallen:
    """What fell, with numbers instead of images."""

    in_memory = True

    def __init__(self, found: Truth, split: int, device: str) -> None:
        parts = (found.raining, found.valid, found.place)
        self.raining, self.valid, self.place = (torch.from_numpy(part).to(device) for part in parts)
        self.split = split

    def __len__(self) -> int:
        return len(self.place)

    def take(self, index: Tensor) -> Windows:
        rows = index.to(self.place.device)
        rate = self.raining[rows].float()  # 1 mm/h where it rained
        number, split = index.view(-1, 1, 1, 1, 1), torch.full((len(rows), 1, 1, 1), self.split)
        return Windows(number, split, rate, self.valid[rows].float(), self.place[rows])


class Recorded(Nowcast):
    """The task on windows of which only the truth is left."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        at_once = _NEAR if place.device == "cpu" else _FAR
        self.per_batch = max(1, at_once // (LEADS * place.scale.size**2))
        self.kept = {split: _Fallen(truth(split, place), k, place.device) for k, split in enumerate(JUDGED)}
        self.regions: list[str] = (record("truth", place) or {})["regions"]

    def _split(self, split: str) -> Data[Windows]:
        return self.kept[split]


def recalled(name: str, place: Place) -> Predict:
    """A piece's forecasts as a predictor: the middle of each step of probability. A split is read when it is asked."""

    @functools.cache
    def held_of(split: int) -> Tensor:
        return torch.from_numpy(levels(name, JUDGED[split], place)).to(place.device)

    def predict(batch: Windows) -> Tensor:
        held = held_of(int(batch.missing.flatten()[0]))
        return (held[batch.satellite.flatten().to(held.device)].float() + 0.5) / STEPS

    return predict


def decided(predict: Predict, choice: BestCheckpoint) -> Predict:
    """The same with decisions already made: 1 where it says rain."""
    limits = torch.tensor(choice.thresholds).view(1, -1, 1, 1)

    def decide(batch: Windows) -> Tensor:
        found = predict(batch)
        return (found >= limits.to(found)).float()

    return decide


def scored(
    task: Recorded, predict: Predict, split: str, *, decision: float | Sequence[float] = 0.5, histograms: bool = False
) -> Scores:  # fmt: skip
    """A pass over the split."""
    scores = Scores(decision=decision, regions=task.regions, histograms=histograms)
    data = task.kept[split]
    for index in batches(data, task.per_batch):
        batch = data.take(index)
        scores.add(predict(batch), batch.rate, batch.valid, batch.place)
    return scores


def threshold(task: Recorded, predict: Predict, *, per_lead: bool = False) -> BestCheckpoint:
    """Chosen on the validation windows; baselines that never say 0.2 may go below."""
    scores = scored(task, predict, "validation", histograms=True)
    lowest = LOWEST if predict_reaches(scores) else 0.02
    return choose(scores, per_lead=per_lead, lowest=lowest)


def predict_reaches(scores: Scores) -> bool:
    """Whether rain is ever given a probability of the lowest threshold that is tried."""
    total = torch.stack(list(scores.histograms.values())).sum((0, 1, 2))
    return bool(total[round(LOWEST * len(total)) :].sum() > 0)


def by_year(scores: Scores) -> dict[str, float]:
    """The mean over region-years, and over those of each year; region-years without any rain are left out of both."""
    counts, places = scores.counts, scores.places
    found = {"total": scores.metrics()["iou"]}
    for year in ("2019", "2020"):
        own = [place for place in places.unique().tolist() if scores.regions[place].startswith(year)]
        groups = [Counts(*[part[places == place] for part in counts]).sum() for place in own]
        found[year] = mean_iou(Counts(*map(torch.stack, zip(*groups)))) if groups else 0.0
    return found
