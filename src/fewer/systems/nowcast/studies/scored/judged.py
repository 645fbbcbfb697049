"""The models of a study on the windows of one split: what each forecast, decided and scored, found once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from fewer.core.task import Predict
from fewer.systems.nowcast.studies.pieces import maps, record
from fewer.systems.nowcast.studies.place import Place
from fewer.systems.nowcast.studies.scored.assembly import Recorded, decided, recalled, scored, threshold
from fewer.systems.nowcast.studies.scored.skill import Skill, skill
from fewer.systems.nowcast.task.baselines.climatology import calibrated
from fewer.systems.nowcast.task.scores.scores import Scores
from fewer.systems.nowcast.task.scores.thresholds import BestCheckpoint

__all__ = ["Judged"]

Found = TypeVar("Found")


class Judged:
    """Ask by a piece's name; thresholds are those of validation."""

    def __init__(self, place: Place, split: str) -> None:
        self.place, self.split, self.task = place, split, Recorded(place)
        self._found: dict[tuple[str, str], Any] = {}

    def piece(self, name: str) -> dict[str, Any]:
        """What its training left beside the forecasts; empty if it is not there."""
        return self._once("piece", name, lambda: record(name, self.place) or {})

    def forecast(self, name: str) -> Predict:
        return self._once("forecast", name, lambda: recalled(name, self.place))

    def choice(self, name: str) -> BestCheckpoint:
        """The threshold chosen on validation windows."""
        return self._once("choice", name, lambda: threshold(self.task, self.forecast(name)))

    def decision(self, name: str) -> Predict:
        """1 where it says rain."""
        return decided(self.forecast(name), self.choice(name))

    def calibrated(self, name: str) -> Predict:
        """The paper's mask: less certain where it rained more in the training windows than in those of validation."""
        train, validation = (torch.from_numpy(maps(split, self.place)) for split in ("train", "validation"))
        return calibrated(self.forecast(name), train, validation)

    def at_half(self, name: str) -> Scores:
        """Rain from probability 0.5 on."""
        return self._once("half", name, lambda: self.scored(self.forecast(name)))

    def at_choice(self, name: str) -> Scores:
        """Rain from the chosen threshold on."""
        return self._once("chosen", name, lambda: self.scored(self.forecast(name), self.choice(name)))

    def skill(self, name: str) -> Skill:
        """What it knows whatever the threshold; rain is weighted as in its training."""
        return self._once("skill", name, lambda: self.skill_of(self.forecast(name), name))

    def skill_of(self, predict: Predict, like: str) -> Skill:
        """Of any forecast, rain weighted as in the training of that piece."""
        return skill(self.task, predict, self.split, self.piece(like)["positive_weight"])

    def scored(self, predict: Predict, choice: BestCheckpoint | None = None) -> Scores:
        """Of any forecast, from the chosen threshold or from 0.5 on."""
        return scored(self.task, predict, self.split, decision=0.5 if choice is None else choice.thresholds)

    def _once(self, kind: str, name: str, find: Callable[[], Found]) -> Found:
        if (kind, name) not in self._found:
            self._found[kind, name] = find()
        found: Found = self._found[kind, name]
        return found
