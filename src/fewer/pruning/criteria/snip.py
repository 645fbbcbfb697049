"""SNIP (Lee, Ajanthan, Torr 2019): how much the loss feels a weight's removal, to first order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.core.task import Noise, Task
from fewer.pruning.criteria.scoring import Modules, Scores, added, by_name, gradients, per_objective

__all__ = ["snip"]


def snip(task: Task[Any], modules: Modules, batches: Sequence[Any], noise: Noise) -> Scores:
    """|w * dL/dw|, the mean over batches, L being the first objective that names the network."""
    scores: Scores = {}
    for objective, nets, names in per_objective(task, modules):
        totals = None
        for batch in batches:
            weights, found = gradients(objective, nets, names, batch, noise)
            saliency = [(weight * gradient).abs() for weight, gradient in zip(weights, found)]
            totals = added(totals, saliency)
        scores |= by_name(modules, names, [total / len(batches) for total in totals or []])
    return scores
