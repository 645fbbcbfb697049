"""Selectors around the task's networks: trained here, loaded from a run, or running in a pack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fewer.core.engines.base import Training
from fewer.core.engines.evaluate import predictor
from fewer.core.engines.loop import fit
from fewer.core.engines.plain import Plain
from fewer.core.task import Predict
from fewer.systems.cellfree.task.arrays import Bools, Floats, Integers
from fewer.systems.cellfree.task.models.cached import cached_predictor
from fewer.systems.cellfree.task.selectors.selector import Selector
from fewer.systems.cellfree.task.survey import Survey, World
from fewer.systems.cellfree.task.task import CellFree, Phones

__all__ = ["Predicting", "Trained"]


class Predicting(Selector):
    """Somebody else's prediction behind the interface: of a run, a vote, or a pack."""

    def __init__(self, task: CellFree, predict: Predict) -> None:
        self.world, self.predict = task.world, predict

    def learn(self, survey: Survey) -> None:
        """Already learned."""

    def scores(self, master: Integers, rsrp_db: Floats, reported: Bools) -> Floats:
        answer = self.predict(_phones(master, rsrp_db, reported, self.world))
        return torch.as_tensor(answer).detach().double().numpy()  # type: ignore[no-any-return]


class Trained(Selector):
    """A network of the task (local, distilled or sage), trained on the spot; `changes` are further settings."""

    def __init__(
        self, model: str = "local", *, steps: int = 3000, batch: int = 100, seed: int = 0,
        changes: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.changes, self.seed = {"model": model, **(changes or {})}, seed
        self.training = Training(steps=steps, batch=batch)

    def learn(self, survey: Survey) -> None:
        self.task = CellFree(replace(self.world.settings, **self.changes), world=self.world, survey=survey)
        engine = Plain(self.task, self.training, self.seed)
        fit(engine)
        self.modules = engine.state.modules_of(0)
        make = predictor if not self.task.settings.graph else cached_predictor
        self._predict: Predict = make(self.task, self.modules)

    def scores(self, master: Integers, rsrp_db: Floats, reported: Bools) -> Floats:
        parts = [slice(first, first + 4096) for first in range(0, len(master), 4096)]
        answers = [self._predict(_phones(master[p], rsrp_db[p], reported[p], self.world)) for p in parts]
        return torch.cat(answers).double().numpy()  # type: ignore[no-any-return]


def _phones(master: Integers, rsrp_db: Floats, reported: Bools, world: World) -> Phones:
    """A batch without labels: gaps are not known, and nothing that predicts looks at them."""
    unknown = torch.full((len(master), world.clusters.candidates.shape[1]), torch.nan)
    return Phones(
        torch.from_numpy(np.ascontiguousarray(master, dtype=np.int64)),
        torch.as_tensor(rsrp_db, dtype=torch.float32),
        torch.as_tensor(reported, dtype=torch.float32),
        unknown,
    )
