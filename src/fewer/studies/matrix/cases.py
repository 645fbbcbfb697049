"""The matrix's tasks at each scale: one table, a line a task; `tiny` is for tests, and says nothing about anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from fewer.core.errors import UserError
from fewer.core.registry import systems
from fewer.core.system import imported
from fewer.studies.order import Order

__all__ = [
    "METHODS",
    "SCALES",
    "SPARSITIES",
    "Case",
    "Scale",
    "cases",
    "expect_device",
    "grid",
    "recipe",
    "settings",
    "size_of",
]

METHODS = ("dense", "random", "magnitude", "snip", "grasp", "synflow", "lottery")
SPARSITIES = (0.5, 0.8, 0.9, 0.95, 0.98)
_QUOTA = 0.01  # of its weights every layer keeps, so that a criterion is not judged by the layers it would cut off
_RATE = 0.5  # of the survivors, a round of the lottery: six rounds to 98 %


@dataclass(frozen=True)
class Case:
    """A task as the matrix trains it, in the words of a grid file."""

    attack: str  # on what the task lets an adversary change, in its own units
    unit: str  # of the attack's budget
    harden: str  # for the study of transfer
    quick: Mapping[str, Any]
    tiny: Mapping[str, Any]
    full: Mapping[str, Any] = field(default_factory=dict)  # empty: the task's own defaults
    metric: str = ""  # that is compared; empty: the task's first
    search: Mapping[str, Any] = field(default_factory=dict)  # words of `fewer smallest`, for the study of that name
    attacked_at: tuple[str, ...] = ("tiny", "quick", "full")  # scales at which an attack takes no minutes a network
    max_loss: float = 0.0  # of the dense figure, that the smallest network may lose; 0: not searched


@dataclass(frozen=True)
class Scale:
    """How much of it."""

    seeds: int
    device: str = "cpu"
    synflow: int = 100  # rounds of scoring, the original's number
    methods: tuple[str, ...] = METHODS


# full: each task to where its dense network has converged, and its own recipe beside the criteria
SCALES = {
    "tiny": Scale(1, synflow=3), "quick": Scale(3, synflow=30), "full": Scale(3, "cuda", methods=(*METHODS, "auto")),
}  # fmt: skip


def cases(only: tuple[str, ...] = ()) -> dict[str, Case]:
    """Those of all systems that have one."""
    return {
        name: imported(system.case) for name, system in systems().items() if system.case and (not only or name in only)
    }


def size_of(scale: str) -> Scale:
    """How much of it."""
    if scale not in SCALES:
        raise UserError(f"scale {scale} of a study that no paper made", "quick or full")
    return SCALES[scale]


def expect_device(scale: str) -> None:
    """Refuse a scale that this machine cannot run."""
    if size_of(scale).device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"scale {scale} without a GPU", "CUDA", "use --scale quick")


def grid(
    scale: str, chosen: Mapping[str, Case], methods: Sequence[str] = (), sparsities: Sequence[float] = SPARSITIES
) -> dict[str, Any]:
    """Tasks x methods x sparsities x seeds, as a grid file would say it."""
    size = size_of(scale)
    options = {"lottery": f",rate={_RATE}", "synflow": f",iterations={size.synflow}"}
    words = [method + options.get(method, "") for method in methods or size.methods]
    return {
        "base": {"device": size.device, "prune.layer_quota": _QUOTA},
        "axes": {"task": list(chosen), "prune": words, "sparsity": list(sparsities), "seed": list(range(size.seeds))},
        "task": {name: dict(getattr(case, scale)) for name, case in chosen.items()},
    }


def settings(order: Order) -> dict[str, Any]:
    """Everything that the matrix trains and is attacked by."""
    chosen = cases()
    return {"grid": grid(order.scale, chosen), "attacks": {name: case.attack for name, case in chosen.items()}}


def recipe(scale: str) -> str:
    """In words, what a reader must know to compare the methods."""
    size = size_of(scale)
    return (
        f"{size.seeds} seeds; SynFlow in {size.synflow} rounds; lottery tickets lose {_RATE:.0%} of what is left a "
        f"round; every layer keeps at least {_QUOTA:.0%} of its weights; a mask that cuts an output off is refused."
    )
