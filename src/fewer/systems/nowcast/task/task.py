"""Nowcasting as a task: one hour of satellite images in, the probability of rain at each pixel and lead time out."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fewer.core.data import batches
from fewer.core.engines.optimizer import Optimizer
from fewer.core.errors import UserError
from fewer.core.recipe import Recipe
from fewer.core.task import Data, Nets, Noise, Objective, Task
from fewer.systems.nowcast.task.augment import turned
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.files.layout import Place
from fewer.systems.nowcast.task.losses import LOSSES, cross_entropy, valid_mean
from fewer.systems.nowcast.task.models.networks import network
from fewer.systems.nowcast.task.scores.scores import Counts, Scores, wet
from fewer.systems.nowcast.task.settings import Settings
from fewer.systems.nowcast.task.sources import Joined, is_own, open_split, opened_size, own_geometry
from fewer.systems.nowcast.task.windows import COMPETITION, Geometry, Windows

__all__ = ["Nowcast", "Seen", "Settings"]

_ROUNDING = 0.01  # deviations; packed images are in half precision
_WIDE = 12.0  # deviations, of bands whose limits nobody has said
_COUNTED = 256  # windows from which the wet share is counted, spread over the training data


class Seen(NamedTuple):
    """What is known when forecasting."""

    satellite: Tensor  # (batch, SEEN, bands, size, size), standardised
    missing: Tensor  # (batch, SEEN, size, size)


class Nowcast(Task[Windows]):
    """Predictions are probabilities of rain, (batch, LEADS, size, size), from 15 minutes to 8 hours ahead."""

    per_batch = 4  # windows that are judged at a time
    whole = ("*.places", "*.times", "*.lead", "*.turn")  # tables of positions, lead times and a rotation: no layers
    recommended: Mapping[str, Any] = {
        "steps": 400,
        "batch": 8,
        "optimizer": Optimizer("adamw", lr=1e-3, weight_decay=2e-2, clip_value=2.0, warmup=50, decay_from=0.3),
    }

    @classmethod
    def recipe(cls, settings: Any) -> Recipe:
        """Gradually, by LAMP: magnitudes alone would empty the widest layers."""
        return Recipe(cls.recommended, prune="lamp,when=gradual")

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._data: dict[str, Data[Windows]] = {}
        self.own = is_own(self.settings)  # files of the user's, not the competition's
        limits = [_limits(name) for name in self.geometry.bands]
        low, high = zip(*limits)
        self.bounds = torch.tensor(low).view(-1, 1, 1), torch.tensor(high).view(-1, 1, 1)

    @property
    def geometry(self) -> Geometry:
        """How many images of what are seen and forecast: the competition's, or as the files have it."""
        return own_geometry(self.settings) if self.own else COMPETITION

    def networks(self) -> dict[str, nn.Module]:
        return {"net": network(self.settings, self.size, self.geometry)}

    def objectives(self) -> tuple[Objective[Windows], ...]:
        _ = self.positive_weight  # counted before the first step, not inside it
        if self.settings.data:
            self._split("validation")  # what is wrong with it is said before hours are spent, not after
        return (Objective(("net",), self._loss),)

    @property
    def size(self) -> int:
        """Pixels along both grids."""
        settings = self.settings
        if self.own:
            return opened_size(settings)
        if settings.data and not settings.size:
            return int(self._split("train").take(torch.arange(1)).satellite.shape[-1])
        return settings.side

    @property
    def places(self) -> tuple[Place, ...]:
        """The region-years that the numbers in `place` stand for; none of generated weather."""
        return getattr(self._split("validation"), "places", ()) if self._blind else ()

    @property
    def _blind(self) -> bool:
        """The competition keeps the truth of its test windows."""
        return bool(self.settings.data) and not self.own

    def data(self, split: str) -> Data[Windows]:
        if split == "train" and self.settings.train_on_all:
            return Joined([self._split("train"), self._split("validation")])
        return self._split(split)

    def _split(self, split: str) -> Data[Windows]:
        """The windows of a split, opened or made once."""
        if split not in ("train", "validation", "test"):
            raise UserError(f"split {split!r}", "one of train, validation, test")
        if split not in self._data:
            self._data[split] = open_split(self.settings, split)
        return self._data[split]

    def about(self) -> dict[str, Any]:
        """What a pack needs to know to be used on files: nothing of the competition's, which every model knows."""
        if not self.own:
            return {}
        weighted = self.settings.loss in ("bce", "bce_paper")
        return {**vars(self.geometry), "positive_weight": self.positive_weight if weighted else 1.0}

    def inputs(self, batch: Windows) -> Seen:
        return Seen(batch.satellite, batch.missing)

    def predict(self, nets: Nets, inputs: Seen, noise: Noise) -> Tensor:
        return torch.sigmoid(self.logits(nets, inputs))

    def evaluate(self, split: str) -> Generator[Windows, Tensor, dict[str, float]]:
        # the competition's own test windows have no truth: there a model is judged by the validation windows
        judged = "validation" if split == "test" and self._blind else split
        data, scores = self.data(judged), Scores(rain_mm_per_hour=self.settings.rain_mm_per_hour)
        for index in batches(data, self.per_batch):
            batch = data.take(index)
            scores.add((yield batch), batch.rate, batch.valid, batch.place)
        hour_of = torch.tensor(self.geometry.hours)
        parts = [
            torch.zeros(int(hour_of.max()), dtype=part.dtype).index_add_(0, hour_of - 1, part)
            for part in scores.counts.sum(0)
        ]
        hours = Counts(*parts).iou().tolist()
        found = scores.metrics() | {f"iou_hour_{hour}": value for hour, value in enumerate(hours, 1)}
        if judged != split:
            found["judged_on_validation"] = 1.0
        if self.settings.train_on_all:
            found["trained_on_validation"] = 1.0
        return found

    def groups(self, batch: Windows) -> Tensor:
        """Region-years: an ensemble may trust another member in each."""
        return batch.place

    def evaluate_groups(self, split: str) -> Generator[Windows, Tensor, dict[int, float]]:
        """IoU of each region-year."""
        data = self._split("validation" if split == "test" and self._blind else split)
        scores = Scores(rain_mm_per_hour=self.settings.rain_mm_per_hour)
        for index in batches(data, self.per_batch):
            batch = data.take(index)
            scores.add((yield batch), batch.rate, batch.valid, batch.place)
        return {int(place): iou for place, iou in scores.by_place().items()}

    def perturbable(self, batch: Windows) -> Tensor:
        """The images, standardised."""
        return batch.satellite

    def replace(self, batch: Windows, surface: Tensor) -> Windows:
        """The windows with other images; what fell stays."""
        return batch._replace(satellite=surface)

    def attack_loss(self, nets: Nets, batch: Windows, noise: Noise) -> Tensor:
        """Cross entropy over the valid pixels of each sample."""
        logits = self.logits(nets, self.inputs(batch))
        return valid_mean(cross_entropy(logits, self._wet(batch), 1.0), batch.valid, (1, 2, 3))

    def majority(self, predictions: Tensor) -> Tensor:
        """The share of members that forecast rain; a tie, a half, is rain."""
        return (predictions >= 0.5).to(predictions).mean(0)

    def logits(self, nets: Nets, inputs: Seen) -> Tensor:
        """Before the sigmoid, in the precision of the images."""
        return nets.net(inputs.satellite, inputs.missing).to(inputs.satellite.dtype)  # type: ignore[no-any-return]

    @property
    def positive_weight(self) -> float:
        """What a wet pixel counts in the loss: given, or ln(1 / wet share), which makes 0.5 a fair threshold for IoU.

        With weight w a model says 0.5 where rain has the probability 1 / (1 + w); the IoU is largest from IoU / (1 +
        IoU) on. The competition's wet shares give 2.56, where the starter kit has 2.58.
        """
        return self.settings.positive_weight or math.log(1 / self.wet_share)

    @property
    def wet_share(self) -> float:
        """Of the valid pixels of the training data, 1e-4 to 0.9."""
        return self._climate()[0]

    def rates(self, probability: Tensor) -> Tensor:
        """What falls on average where rain has a probability, in mm/h: the competition of 2023 asks for it.

        A model that learned with weight w says w p / (w p + 1 - p), which is undone; rain has the mean rate of the
        training data's.
        """
        weight = self.positive_weight if self.settings.loss in ("bce", "bce_paper") else 1.0
        return probability / (probability + weight * (1 - probability)) * self._climate()[1]

    def _climate(self) -> tuple[float, float]:
        """Share and mean rate (mm/h) of the training data's wet pixels, counted once on windows spread over it."""
        if not hasattr(self, "_counted"):
            data = self._split("train")
            index = torch.linspace(0, len(data) - 1, min(_COUNTED, len(data))).long()
            rain = fallen = valid = 0.0
            for part in index.split(self.per_batch):
                batch = data.take(part)
                wet = self._wet(batch) * batch.valid
                rain += float(wet.sum(dtype=torch.float64))
                fallen += float((wet * batch.rate).sum(dtype=torch.float64))
                valid += float(batch.valid.sum(dtype=torch.float64))
            if not valid:
                raise UserError(
                    f"{len(index)} training windows in which no radar saw anything", "some that one did",
                    "fewer data nowcast --check",
                )  # fmt: skip
            self._counted = min(max(rain / max(valid, 1.0), 1e-4), 0.9), fallen / max(rain, 1.0)
        return self._counted

    def _wet(self, batch: Windows) -> Tensor:
        return wet(batch.rate, self.settings.rain_mm_per_hour).to(batch.satellite.dtype)

    def _loss(self, nets: Nets, batch: Windows, noise: Noise) -> Tensor:
        if self.settings.augment:
            batch = turned(batch, noise)
        logits = self.logits(nets, self.inputs(batch))
        return LOSSES[self.settings.loss](logits, self._wet(batch), batch.valid, self.positive_weight)


def _limits(name: str) -> tuple[float, float]:
    """The lowest and the highest value of a band, standardised."""
    for band in BANDS:
        if band.name == name:
            low, high = -band.mean / band.deviation, (band.highest - band.mean) / band.deviation
            return low - _ROUNDING, high + _ROUNDING
    return -_WIDE, _WIDE
