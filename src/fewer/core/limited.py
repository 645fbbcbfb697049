"""A task with the first samples of its splits alone, where judging all of them takes too long."""

from __future__ import annotations

import copy
from collections.abc import Generator
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from fewer.core.data import TensorData, size
from fewer.core.errors import UserError
from fewer.core.task import Batch, Data, Task

__all__ = ["limited"]

Kind = TypeVar("Kind", bound=Task[Any])


class _First(Generic[Batch]):
    """The first samples of data that is read when asked for."""

    def __init__(self, whole: Data[Batch], count: int) -> None:
        self.whole, self.count, self.in_memory = whole, count, whole.in_memory

    def __len__(self) -> int:
        return self.count

    def take(self, index: Tensor) -> Batch:
        return self.whole.take(index)


def limited(task: Kind, count: int) -> Kind:
    """The task whose splits end after `count` samples; one that is judged on something else refuses when it is."""
    if count < 1:
        raise UserError(f"a limit of {count} samples", "at least 1")
    short = copy.copy(task)

    def data(split: str) -> Data[Any]:
        whole = task.data(split)
        first = min(count, len(whole))
        return TensorData(whole.take(torch.arange(first))) if isinstance(whole, TensorData) else _First(whole, first)

    def evaluate(split: str) -> Generator[Any, Tensor, dict[str, float]]:
        running, asked = type(task).evaluate(short, split), 0
        batch = next(running)
        while True:
            asked += size(batch)
            if asked > count:
                raise UserError(
                    f"a limit of {count} samples for {type(task).__name__}, which asks about more",
                    "a task that is judged on the samples of its split, not on episodes",
                    "leave the limit out",
                )
            try:
                batch = running.send((yield batch))
            except StopIteration as stop:
                found: dict[str, float] = stop.value
                return found

    # the copy keeps the task's class and so all its abilities; only these two answers differ
    object.__setattr__(short, "data", data)
    object.__setattr__(short, "evaluate", evaluate)
    return short
