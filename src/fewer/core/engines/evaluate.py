"""How well it went: a task yields batches, somebody predicts, the task counts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.utils import _pytree as pytree

from fewer.core.abilities import Together
from fewer.core.data import convert, place_constants_
from fewer.core.engines.layers import batchable
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.state import State
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.core.task import Predict, Task

__all__ = ["answered", "evaluate", "evaluate_cohort", "predictor"]

Found = TypeVar("Found")


def predictor(task: Task[Any], modules: Mapping[str, nn.Module], seed: int = 0) -> Predict:
    """The task's own prediction with these modules, in eval mode and without gradients, where the modules lie."""
    nets = NetworkSet(modules, training=False)
    first = next((p for module in modules.values() for p in module.parameters()), torch.zeros(0))
    noise = _noise(seed, first)

    def predict(batch: Any) -> Tensor:
        place_constants_(task, first.device, first.dtype)  # another engine may have moved them meanwhile
        with torch.no_grad():
            return task.predict(nets, task.inputs(convert(batch, first.device, first.dtype)), noise)

    return predict


def _noise(seed: int, like: Tensor) -> Stream:
    zero = torch.zeros((), dtype=torch.int64, device=like.device)
    return Stream(zero + seed, zero, like.dtype)


def evaluate(task: Task[Any], predict: Predict, split: str = "test") -> dict[str, float]:
    """The task's metrics for whoever predicts: a network, a pack, a vote, something under attack."""
    return answered(task.evaluate(split), predict)


def evaluate_cohort(task: Task[Any], state: State, split: str = "test") -> list[dict[str, float]]:
    """Every replica's metrics, all replicas' batches predicted in one vmapped call."""
    first = next(iter(state.networks.values())).weights
    modules = {name: network.module.train(False) for name, network in state.networks.items()}
    weights = {name: {**network.views(), **network.buffers} for name, network in state.networks.items()}
    seeds = torch.tensor(state.seeds, device=first.device)

    def one(weights: Any, batch: Any, seed: Tensor) -> Tensor:
        nets = NetworkSet(modules, weights, training=False)
        return task.predict(nets, task.inputs(batch), Stream(seed, torch.zeros_like(seed), first.dtype))

    def predict_stacked(stacked: Any) -> Tensor:
        place_constants_(task, first.device, first.dtype)
        with torch.no_grad(), batchable():
            return vmap(one)(weights, convert(stacked, first.device, first.dtype), seeds)

    def predict(batches: Sequence[Any]) -> Sequence[Tensor]:
        placed = [convert(batch, first.device, first.dtype) for batch in batches]
        return predict_stacked(pytree.tree_map(lambda *leaves: torch.stack(leaves), *placed)).unbind()

    if isinstance(task, Together):
        return answered(task.evaluate_together(split, len(state.seeds)), predict_stacked)
    return _side_by_side([task.evaluate(split) for _ in state.seeds], predict)


def answered(evaluation: Generator[Any, Tensor, Found], predict: Predict) -> Found:
    """What an evaluation returns when every batch that it asks about is predicted."""
    return _side_by_side([evaluation], lambda batches: [predict(batches[0])])[0]


def _side_by_side(
    evaluations: Sequence[Generator[Any, Tensor, Found]], predict: Callable[[list[Any]], Sequence[Tensor]]
) -> list[Found]:
    """Drive evaluations side by side, a round of batches at a time, until each has returned its metrics.

    One that ends early keeps receiving its last prediction's place but is no longer asked.
    """
    waiting: dict[int, Any] = {}
    metrics: dict[int, Found] = {}
    for index, evaluation in enumerate(evaluations):
        try:
            waiting[index] = next(evaluation)
        except StopIteration:
            raise UserError("an evaluation that asks about no batch", "at least one prediction to judge") from None
    last = dict(waiting)
    while waiting:
        last.update(waiting)
        predictions = predict([last[index] for index in range(len(evaluations))])
        for index in list(waiting):
            try:
                waiting[index] = evaluations[index].send(predictions[index])
            except StopIteration as stop:
                metrics[index] = stop.value
                del waiting[index]
    return [metrics[index] for index in range(len(evaluations))]
