"""Data held in memory: every leaf one tensor, samples on axis 0."""

from __future__ import annotations

from typing import Any, Generic

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fewer.core.errors import UserError
from fewer.core.task import Batch, Data, Task

__all__ = ["TensorData", "batches", "convert", "place_constants_", "placed", "size"]


class TensorData(Generic[Batch]):
    """A whole data set as one batch; `take` gathers on whatever device it lies."""

    in_memory = True

    def __init__(self, samples: Batch) -> None:
        lengths = {len(leaf) for leaf in pytree.tree_leaves(samples)}
        if len(lengths) != 1:
            raise UserError(f"leaves of {sorted(lengths)} samples", "the same number in every leaf")
        self.samples, self._length = samples, lengths.pop()

    def __len__(self) -> int:
        return self._length

    def take(self, index: Tensor) -> Batch:
        """The samples at a 1-D index."""

        def taken(leaf: Tensor) -> Tensor:
            return leaf.index_select(0, index.to(leaf.device))

        return pytree.tree_map(taken, self.samples)  # type: ignore[no-any-return]


def convert(batch: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """Every leaf on the device, floating ones in the given precision."""

    def one(leaf: Tensor) -> Tensor:
        return leaf.to(device, dtype if leaf.is_floating_point() else leaf.dtype)

    return pytree.tree_map(one, batch)


def placed(data: Data[Any], device: torch.device, dtype: torch.dtype) -> Data[Any]:
    """Data that answers on the device: moved once if it is tensors, batch by batch if not."""
    return TensorData(convert(data.samples, device, dtype)) if isinstance(data, TensorData) else data


def place_constants_(task: Task[Any], device: torch.device, dtype: torch.dtype) -> None:
    """Let the task's constants be where, and as precise as, the networks that are about to run."""
    if task.constants:
        task.constants = convert(dict(task.constants), device, dtype)


def size(batch: Any) -> int:
    """How many samples."""
    return len(pytree.tree_leaves(batch)[0])


def batches(data: Data[Batch], per_batch: int, limit: int | None = None) -> list[Tensor]:
    """Indices that cover the data in order, in batches."""
    count = len(data) if limit is None else min(limit, len(data))
    return list(torch.arange(count).split(per_batch))
