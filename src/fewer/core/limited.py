"""A task with the first samples of its splits alone, where judging all of them takes too long."""

from __future__ import annotations

import inspect
from collections.abc import Generator
from typing import Any

import torch
from torch import Tensor

from fewer.core.abilities import Variant, kind_of
from fewer.core.data import TensorData, size
from fewer.core.errors import UserError
from fewer.core.task import Data, Task

__all__ = ["Limited"]


class _First:
    """The first samples of data that is read when asked for."""

    def __init__(self, whole: Data[Any], count: int) -> None:
        self.take, self.count, self.in_memory = whole.take, count, whole.in_memory

    def __len__(self) -> int:
        return self.count


class Limited(Variant):
    """The task whose splits end after `count` samples; one that is judged on something else refuses when it is.

    Unlike in other variants, the methods of the task run with this one as their `self`: what they judge is its data.
    """

    def __init__(self, task: Task[Any], count: int) -> None:
        if count < 1:
            raise UserError(f"a limit of {count} samples", "at least 1")
        super().__init__(task)
        self.count = count

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:  # type: ignore[override]
        return type(self.task)  # what `super()` in those methods asks for

    def __getattr__(self, name: str) -> Any:
        found = inspect.getattr_static(type(self.task), name, None)
        return found.__get__(self) if inspect.isfunction(found) else super().__getattr__(name)

    def data(self, split: str) -> Data[Any]:
        whole = self.task.data(split)
        first = min(self.count, len(whole))
        return TensorData(whole.take(torch.arange(first))) if isinstance(whole, TensorData) else _First(whole, first)

    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        running, asked = type(self.task).evaluate(self, split), 0
        batch = next(running)
        while True:
            asked += size(batch)
            if asked > self.count:
                raise UserError(
                    f"a limit of {self.count} samples for {kind_of(self.task)}, which asks about more",
                    "a task that is judged on the samples of its split, not on episodes",
                    "leave the limit out",
                )
            try:
                batch = running.send((yield batch))
            except StopIteration as stop:
                found: dict[str, float] = stop.value
                return found
