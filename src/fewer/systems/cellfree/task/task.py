"""Choosing access points as a task: what phones report in, the probability that each candidate serves out."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.data import TensorData
from fewer.core.engines.optimizer import Optimizer
from fewer.core.errors import UserError
from fewer.core.recipe import Recipe
from fewer.core.task import Data, Nets, Noise, Objective, Task
from fewer.systems.cellfree.task.imagined import Imagined
from fewer.systems.cellfree.task.models.local import Local, surroundings
from fewer.systems.cellfree.task.models.sage import Sage, access_point_graph
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.statistics import metrics
from fewer.systems.cellfree.task.survey import Survey, World

__all__ = ["CellFree", "Phones", "Reports", "Settings", "phones_of"]

_PER_BATCH = 2000

_LOGISTIC = 1.702  # sigmoid(1.702 z) is the normal distribution function within 0.01
_GAP_SHARE = 0.1  # of the gap's likelihood in the loss: choosing comes first
_SAGE_SCALE = 30.0  # larger inputs let the first layers of the deep graph network move faster


class Reports(NamedTuple):
    """What is known of a phone."""

    master: Tensor  # (phones,) integer
    rsrp_db: Tensor  # (phones, measured), the master first
    reported: Tensor  # (phones, measured), 1 or 0


class Phones(NamedTuple):
    """Reports and what is true."""

    master: Tensor
    rsrp_db: Tensor
    reported: Tensor
    gap_db: Tensor  # (phones, c + 1), how far each candidate lies below the master


_WORSE = {"snip": "90 % removed cost 2 % of the accuracy where the recipe cost half a per cent"}


class CellFree(Task[Phones]):
    """One deployment. Predictions are (phones, c + 1) probabilities of serving, the master first."""

    recommended: Mapping[str, Any] = {"steps": 5000, "batch": 100}  # 50 epochs of the paper's 100 graphs
    whole = ("net.own.weight",)  # a row for each access point, which a phone reads one of

    @classmethod
    def recipe(cls, settings: Any) -> Recipe:
        """Gradually, by LAMP, which leaves the smallest layers whole; by magnitude one of them would be emptied.

        In twice the steps: with as many as dense a tenth of the weights lost 0.52 % of the validation figure.
        """
        return Recipe(cls.recommended, prune="lamp,when=gradual", pruned={"steps": 10_000}, worse=_WORSE)

    def __init__(
        self, settings: Settings | None = None, *, world: World | None = None, survey: Survey | None = None
    ) -> None:
        self.settings = settings if settings is not None else world.settings if world is not None else Settings()
        self.world = World.make(self.settings) if world is None else world
        counts = self.settings.train_phones, self.settings.validation_phones, self.settings.test_phones
        self._counts = dict(zip(("train", "validation", "test"), counts))
        self._surveys: dict[str, Survey] = {} if survey is None else {"train": survey}
        train = self.survey("train")
        strongest, heard = train.rsrp_db[:, 0], train.rsrp_db[train.reported]
        self.standard = float(strongest.mean()), max(float(strongest.std()), 1e-3)  # dB, of the master's signal
        margin = 10.0 * self.standard[1]
        # what was not reported stands as 0 dB, which is inside too
        low, high = min(float(heard.min()), 0.0) - margin, max(float(heard.max()), 0.0) + margin
        self.bounds = torch.tensor(low), torch.tensor(high)
        self.constants: Mapping[str, Tensor] = self._constants()

    def _constants(self) -> dict[str, Tensor]:
        clusters, deployment = self.world.clusters, self.world.deployment
        if not self.settings.graph:
            return {"around": _tensor(surroundings(deployment, clusters))}
        (center, spread), (neighbours, features, heard) = self.standard, access_point_graph(deployment)
        if self.settings.model == "sage":
            features = np.concatenate([_SAGE_SCALE * (features - center) * heard / spread, heard], axis=1)
        return {
            "features": _tensor(features),
            "neighbours": torch.from_numpy(neighbours),
            "candidates": torch.from_numpy(clusters.candidates.astype(np.int64)),
            "measured": torch.from_numpy(clusters.measured.astype(np.int64)),
            "identity": torch.eye(len(deployment)),
        }

    def survey(self, split: str) -> Survey:
        """The phones of a split, made once."""
        if split not in self._counts:
            raise UserError(f"split {split!r}", f"one of {', '.join(self._counts)}")
        if split not in self._surveys:
            self._surveys[split] = self.world.survey(self._counts[split], part=split)
        return self._surveys[split]

    def networks(self) -> dict[str, nn.Module]:
        count, slots = len(self.world.deployment), self.settings.candidates + 1
        if self.settings.graph:
            return {"net": Sage(count, inputs=self.constants["features"].shape[1])}
        reports, around = 2 * self.settings.measured, self.constants["around"].shape[1]
        return {"net": Local(count, slots - 1, reports=reports, around=around, width=self.settings.width)}

    def objectives(self) -> tuple[Objective[Phones], ...]:
        augment = self._with_missing if self.settings.learn_missing and self.settings.measured > 1 else None
        if self.settings.model == "sage-literal":
            return (Objective(("net",), self._loss, augment=augment),)  # the paper names no optimiser: the training's
        # one cycle: a short rise, then a cosine down to zero
        rate = 2e-3 if self.settings.model == "sage" else 1e-2
        optimizer = Optimizer(lr=rate, clip=5.0, warmup=200, decay_from=0.1)
        return (Objective(("net",), self._loss, optimizer=optimizer, augment=augment),)

    def _with_missing(self, batch: Phones, noise: Noise) -> Phones:
        """Some of the reports hidden, the master's never: phones that a model is asked about lose some too."""
        lost = noise.uniform("missing", (*batch.reported.shape[-2:],)) < self.settings.learn_missing
        others = torch.arange(batch.reported.shape[-1], device=batch.reported.device) > 0
        arrived = batch.reported * (~(lost & others)).to(batch.reported.dtype)
        return batch._replace(reported=arrived, rsrp_db=batch.rsrp_db * arrived)

    def data(self, split: str) -> Data[Phones]:
        if split == "train" and self.settings.model == "distilled":
            return self._imagined
        return TensorData(phones_of(self.survey(split)))

    @cached_property
    def _imagined(self) -> Data[Phones]:
        return _ImaginedData(Imagined(self.world, self.survey("train")))

    def inputs(self, batch: Phones) -> Reports:
        return Reports(batch.master, batch.rsrp_db, batch.reported)

    def predict(self, nets: Nets, inputs: Reports, noise: Noise) -> Tensor:
        if self.settings.graph:
            return torch.sigmoid(self._sage(nets, inputs))
        # the master always reports, so its flag is the probability that it serves
        return torch.cat([inputs.reported[:, :1], torch.sigmoid(self._local(nets, inputs))], dim=1)

    def evaluate(self, split: str) -> Generator[Phones, Tensor, dict[str, float]]:
        survey = self.survey(split)
        data, answers = phones_of(survey), []
        for first in range(0, len(survey), _PER_BATCH):
            answers.append((yield Phones(*(leaf[first : first + _PER_BATCH] for leaf in data))))
        scores = torch.cat([answer.detach().double().cpu() for answer in answers]).numpy()
        return metrics(scores, survey, self.settings.threshold_db)

    def perturbable(self, batch: Phones) -> Tensor:
        """The reports, in dB."""
        return batch.rsrp_db

    def replace(self, batch: Phones, surface: Tensor) -> Phones:
        """The phones with other reports; what is true of them stays."""
        return batch._replace(rsrp_db=surface)

    def attack_loss(self, nets: Nets, batch: Phones, noise: Noise) -> Tensor:
        """Cross entropy over the candidates, without the master."""
        return self._entropy(self._link_logits(nets, self.inputs(batch)), batch.gap_db[:, 1:]).mean(dim=1)

    def majority(self, predictions: Tensor) -> Tensor:
        """The share of members that let each candidate serve; a tie serves."""
        return (predictions >= 0.5).to(predictions).mean(0)

    def logits(self, nets: Nets, inputs: Reports, noise: Noise) -> Tensor:
        """(phones, c): scores of the candidates, master left out, as a choice of the next access point."""
        return self._link_logits(nets, inputs)

    def labels(self, batch: Phones) -> Tensor:
        """(phones,): the strongest candidate beside the master, the one to hand over to."""
        return batch.gap_db[:, 1:].argmin(dim=1)

    def gap(self, nets: Nets, inputs: Reports) -> tuple[Tensor, Tensor]:
        """(phones, c) mean and deviation in dB of each candidate's gap, master left out; of the local model alone."""
        logit, log_slope = self._local(nets, inputs, gaps=True).unbind(dim=2)
        deviation = torch.exp(-log_slope)
        return self.settings.threshold_db - logit / _LOGISTIC * deviation, deviation

    def _local(self, nets: Nets, inputs: Reports, *, gaps: bool = False) -> Tensor:
        reports = torch.cat([self._standardised(inputs), inputs.reported], dim=1)
        around = self.constants["around"].index_select(0, inputs.master)
        return nets.net(reports, around, inputs.master, gaps)  # type: ignore[no-any-return]

    def _standardised(self, inputs: Reports) -> Tensor:
        return (inputs.rsrp_db - self.standard[0]) / self.standard[1] * inputs.reported

    def _sage(self, nets: Nets, inputs: Reports) -> Tensor:
        graph = (self.constants[name][None] for name in ("features", "neighbours", "candidates"))
        return nets.net(self.node_features(inputs), inputs.master, *graph)  # type: ignore[no-any-return]

    def node_features(self, inputs: Reports) -> Tensor:
        """What the paper's network is told of phones: (phones, L) raw dB, 0 where not measured, or (phones, 2 L)."""
        at = self.constants["identity"][self.constants["measured"][inputs.master]]  # (phones, measured, L)
        if self.settings.model == "sage-literal":
            return torch.matmul((inputs.rsrp_db * inputs.reported)[:, None], at).flatten(1)
        values = torch.stack([_SAGE_SCALE * self._standardised(inputs), inputs.reported], dim=1)
        return torch.matmul(values, at).flatten(1)

    def _link_logits(self, nets: Nets, inputs: Reports) -> Tensor:
        """(phones, c), master left out."""
        if self.settings.graph:
            return self._sage(nets, inputs)[:, 1:]
        return self._local(nets, inputs)

    def _entropy(self, logits: Tensor, gap_db: Tensor) -> Tensor:
        serves = (gap_db < self.settings.threshold_db).to(logits.dtype)
        return functional.binary_cross_entropy_with_logits(logits, serves, reduction="none")

    def _loss(self, nets: Nets, batch: Phones, noise: Noise) -> Tensor:
        if self.settings.graph:
            return self._entropy(self._sage(nets, self.inputs(batch)), batch.gap_db).mean()
        logit, log_slope = self._local(nets, self.inputs(batch), gaps=True).unbind(dim=2)
        gap = batch.gap_db[:, 1:]
        away = (gap - self.settings.threshold_db) * torch.exp(log_slope) + logit / _LOGISTIC
        likelihood = 0.5 * away.square() - log_slope
        return (self._entropy(logit, gap) + _GAP_SHARE * likelihood).mean()


class _ImaginedData(TensorData[Phones]):
    """Imagined when training begins; whoever asks for a few examples gets them at once."""

    def __init__(self, phones: Imagined) -> None:
        self._phones, self._length = phones, phones.count

    @cached_property
    def samples(self) -> Phones:  # type: ignore[override]  # as an attribute that is made late
        return phones_of(self._phones.all())

    @cached_property
    def _first(self) -> TensorData[Phones]:
        return TensorData(phones_of(self._phones.first()))

    def take(self, index: Tensor) -> Phones:
        few = "samples" not in vars(self) and len(index) > 0 and int(index.max()) < len(self._first)
        return self._first.take(index) if few else super().take(index)


def _tensor(array: object) -> Tensor:
    return torch.as_tensor(array, dtype=torch.float32)


def phones_of(survey: Survey) -> Phones:
    """A survey as tensors."""
    return Phones(
        torch.from_numpy(survey.master),
        _tensor(survey.rsrp_db),
        _tensor(survey.reported),
        _tensor(survey.gap_db),
    )
