"""The weights that did best on validation, looked at every so many steps: each replica's own, kept across a kill.

Training goes on unchanged; only which weights it ends with, and whether it ends early, is decided here. What is
remembered is a function of the steps up to now, so a killed run that looks again at what it had seen decides the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fewer.core.engines.evaluate import evaluate, evaluate_cohort, predictor
from fewer.core.errors import UserError
from fewer.core.files.run_folder import BEST, Folder

if TYPE_CHECKING:
    from fewer.core.engines.base import Engine

__all__ = ["BestCheckpoint"]


class BestCheckpoint:
    """`validate` a state, ask whether training is `done`, and in the end `restore_` the best."""

    def __init__(self, engine: Engine, folder: Folder | None) -> None:
        self.every, self.patience = engine.training.validate_every, engine.training.patience
        self.folder = folder
        replicas = engine.state.replicas
        self.scores = torch.full((replicas,), -math.inf, dtype=torch.float64)
        self.steps = torch.zeros(replicas, dtype=torch.float64)
        self.kept: dict[str, Tensor] = {}
        if folder is not None and (folder.path / BEST).exists():
            self.kept = folder.read_tensors(BEST)
            if not {"scores", "steps"} <= self.kept.keys():
                raise UserError(f"{folder.path / BEST} without scores and steps", "what this run wrote", "train anew")
            self.scores, self.steps = self.kept.pop("scores"), self.kept.pop("steps")
        self.scores, self.steps = engine.agreed(self.scores), engine.agreed(self.steps)

    def next(self, step: int) -> int:
        """The first look after a step."""
        return (step // self.every + 1) * self.every

    def waiting(self, step: int) -> Tensor:
        """(replicas,): whose patience is not at an end."""
        if not self.patience:
            return torch.ones_like(self.steps, dtype=torch.bool)
        return step - self.steps < self.patience * self.every

    def done(self, step: int) -> bool:
        """Whether no replica may still improve."""
        return step % self.every == 0 and not bool(self.waiting(step).any())

    def validate(self, engine: Engine) -> dict[str, Any]:
        """Judge the weights as they are; those that beat a replica's best become it. What the log says of it."""
        name, scores = _judged(engine)
        scores = engine.agreed(scores)
        # a replica without patience left is not judged again, whoever trains on beside it
        better = self.waiting(engine.count) & (scores > self.scores)
        values = [value if math.isfinite(value) else None for value in scores.tolist()]
        line = {"step": engine.count, f"validation/{name}": values if len(values) > 1 else values[0]}
        if self.folder is not None:
            self.folder.log(line)
        if not bool(better.any()):
            return line
        self.scores = torch.where(better, scores, self.scores)
        self.steps = torch.where(better, float(engine.count), self.steps)
        for key, tensor in engine.state.named():
            if key.startswith(("weights/", "buffers/")):
                now = tensor.detach().cpu()
                rows = better.view(-1, *(1,) * (now.ndim - 1))
                self.kept[key] = torch.where(rows, now, self.kept[key]) if key in self.kept else now.clone()
        if self.folder is not None:
            self.folder.write_tensors(BEST, {**self.kept, "scores": self.scores, "steps": self.steps})
        return line

    def restore_(self, engine: Engine) -> tuple[int, ...]:
        """Give the engine each replica's best weights; the steps they come from."""
        if self.kept:
            engine.state.load_({**dict(engine.state.named()), **self.kept})
        return tuple(int(step) for step in self.steps)


def _judged(engine: Engine) -> tuple[str, Tensor]:
    """The name of the metric that matters and each replica's value of it."""
    state = engine.state
    if state.replicas == 1:
        predict = predictor(engine.task, state.modules_of(0), state.seeds[0])
        metrics = [evaluate(engine.task, predict, "validation")]
    else:
        metrics = evaluate_cohort(engine.task, state, "validation")
    name = next(iter(metrics[0]))
    values = torch.tensor([float(found[name]) for found in metrics], dtype=torch.float64)
    # weights that are not finite may well score: they answer the same to everything
    return name, torch.where(state.finite(), torch.nan_to_num(values, nan=-math.inf), -math.inf)
