"""What a network did on each test unit, plain and under attack: of a system's own kind, or right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fewer.attack.audit import Audit, attacked, robust
from fewer.core.abilities import Classifier
from fewer.core.data import batches
from fewer.core.engines.nets import NetworkSet
from fewer.core.registry import system_of
from fewer.core.system import imported
from fewer.core.task import Predict, Task
from fewer.report.certainty.units import Array, Units
from fewer.run.load import Trained

__all__ = ["judged", "judged_under", "leading"]

_AT_ONCE = 500
_ROUNDING = 0.005  # an accuracy that is counted in another way is further away than that


def leading(run: Trained) -> str:
    """The metric that the task cares for most."""
    return next(iter(run.metrics), "")


def judged(run: Trained, task: Task[Any], predict: Predict) -> Units | None:
    """Of the test split; None where nobody says what its units are."""
    own = system_of(run.job.task).units
    if own:
        return imported(own)(task, predict)  # type: ignore[no-any-return]
    if not _classifies(run, task):
        return None
    data, right, labels = task.data("test"), [], []
    for index in batches(data, _AT_ONCE):
        batch = data.take(index)
        label = task.labels(batch).cpu()  # type: ignore[attr-defined]
        right.append((predict(batch).argmax(-1).cpu() == label).numpy())
        labels.append(label.numpy())
    found = _counted(np.concatenate(right), np.concatenate(labels))
    return found if abs(found.records.mean() - run.metrics["accuracy"]) <= _ROUNDING else None


def judged_under(run: Trained, task: Task[Any], attack: str, limit: int) -> Units | None:
    """The same when every input is attacked; classifiers count the first `limit` images, each until it is fooled."""
    nets, seed = NetworkSet(run.modules, training=False), run.job.seeds[0]
    if _classifies(run, task):
        survived = robust(task, nets, attack, Audit(limit=limit, seed=seed)).survived.cpu().numpy()
        first = task.data("test").take(torch.arange(len(survived)))
        return _counted(survived, task.labels(first).cpu().numpy())  # type: ignore[attr-defined]
    own = system_of(run.job.task).units
    found: Units | None = imported(own)(task, attacked(task, nets, attack, seed=seed)) if own else None
    return found


def _classifies(run: Trained, task: Task[Any]) -> bool:
    return isinstance(task, Classifier) and leading(run) == "accuracy"


def _counted(right: Array, labels: Array) -> Units:
    return Units("images", right.astype(np.bool_), lambda some: {"accuracy": float(some.mean())}, labels)
