"""GraSP (Wang, Zhang, Grosse 2020): keep the weights whose removal would hurt the gradient flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from fewer.core.abilities import Classifier
from fewer.core.data import size
from fewer.core.errors import UserError
from fewer.core.task import Noise, Task
from fewer.pruning.criteria.scoring import Modules, Scores, added, by_name, gradients, per_objective

__all__ = ["grasp"]

TEMPERATURE = 200.0  # as published, on the logits of a cross-entropy


def grasp(task: Task[Any], modules: Modules, batches: Sequence[Any], noise: Noise) -> Scores:
    """w * (H g), larger is kept: the published score -w * (H g) ranks what to remove.

    g is the gradient of the sum over batches, H g is accumulated batch by batch (the paper's two halves). A regression
    loss needs no temperature: a factor on the loss rescales all scores alike.
    """
    if len(batches) < 2:
        raise UserError(f"{len(batches)} batch of {size(batches[0])} for grasp", "at least two halves")
    scores: Scores = {}
    for objective, nets, names in per_objective(task, modules):
        if isinstance(task, Classifier):
            nets = replace(nets, divisor=TEMPERATURE)
        whole = None
        for batch in batches:
            _, found = gradients(objective, nets, names, batch, noise)
            whole = added(whole, found)
        curvature = None
        for batch in batches:
            weights, found = gradients(objective, nets, names, batch, noise, graph=True)
            product = sum((g * f).sum() for g, f in zip(whole or [], found))
            try:
                part = list(torch.autograd.grad(torch.as_tensor(product), weights, materialize_grads=True))
            except NotImplementedError as error:
                raise UserError(f"grasp where {error}", "layers with second derivatives", "--prune snip") from None
            curvature = added(curvature, part)
        scores |= by_name(modules, names, [w * h for w, h in zip(weights, curvature or [])])
    return scores
