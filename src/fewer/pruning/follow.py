"""Masks of the networks that do not choose their own: followers and target copies."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fewer.core.mask import Mask
from fewer.core.task import Task

__all__ = ["followed"]


def followed(task: Task[Any], mask: Mask) -> dict[str, dict[str, Tensor]]:
    """The mask with the networks that take another's, and the target copies.

    Where the network they follow is not pruned, as one that no objective trains, neither are they.
    """
    found = {name: dict(by_parameter) for name, by_parameter in mask.items()}
    leaders = [*task.same_mask().items(), *((name, target.of) for name, target in task.copies().items())]
    for name, leader in leaders:
        found.pop(name, None)
        if leader in found:
            found[name] = found[leader]
    return found
