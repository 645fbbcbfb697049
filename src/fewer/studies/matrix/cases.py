"""The matrix's tasks at each scale: one table, a line a task; `tiny` is for tests, and says nothing about anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from fewer.core.errors import UserError
from fewer.core.registry import TASKS

__all__ = ["CASES", "METHODS", "SCALES", "SPARSITIES", "Case", "Scale", "cases", "grid", "recipe", "size_of"]

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
    figure: str = ""  # that is compared; empty: the task's first


@dataclass(frozen=True)
class Scale:
    """How much of it."""

    seeds: int
    device: str = "cpu"
    synflow: int = 100  # rounds of scoring, the original's number


SCALES = {"tiny": Scale(1, synflow=3), "quick": Scale(3, synflow=30), "full": Scale(5, "cuda")}

CASES: dict[str, Case] = {
    "vision": Case(
        "pgd:0.1,steps=10", "pixels, 0 to 1", "fast:0.1",
        quick={"steps": 400, "batch": 64, "set.network": "mlp"},
        tiny={"steps": 3, "batch": 8, "set.network": "cnn0", "set.classes": "3,7"},
        full={"set.network": "cnn2"},
    ),
    "cellfree": Case(
        "pgd:3,steps=10", "dB", "fast:3",
        quick={"steps": 600, "set.access_points": 50, "set.train_phones": 4000, "set.validation_phones": 500,
               "set.test_phones": 1500},
        tiny={"steps": 3, "batch": 8, "set.access_points": 12, "set.candidates": 4,
              "set.train_phones": 120, "set.validation_phones": 20, "set.test_phones": 60},
    ),
    "nowcast": Case(
        "pgd:0.1,steps=5", "deviations of a band", "fast:0.1",
        # short trainings never dare to say rain, and a threshold would see no difference between them
        figure="average_precision",
        quick={"steps": 120, "batch": 16, "optimizer.lr": 2e-3, "set.model": "focus", "set.size": 24,
               "set.width": 8, "set.train_windows": 400, "set.augment": True, "set.validation_windows": 8,
               "set.test_windows": 48, "prune.samples": 8},
        tiny={"steps": 2, "batch": 2, "set.model": "focus", "set.size": 24, "set.width": 8, "set.train_windows": 6,
              "set.validation_windows": 2, "set.test_windows": 2, "prune.samples": 2},
        full={"set.model": "focus", "prune.samples": 16},
    ),
    "control": Case(
        "fgsm:0.1", "deviations of an observation", "fast:0.1",
        quick={"steps": 1500, "batch": 100, "set.environment": "walker2d", "set.algorithm": "plain-bc",
               "set.transitions": 20000, "set.hidden": "128,128", "set.episodes": 5, "set.horizon": 300},
        tiny={"steps": 2, "batch": 8, "set.environment": "walker2d", "set.algorithm": "td3bc", "set.transitions": 300,
              "set.hidden": "128,128", "set.episodes": 1, "set.horizon": 5},
        full={"set.environment": "walker2d"},
    ),
}  # fmt: skip


def cases(only: tuple[str, ...] = ()) -> dict[str, Case]:
    """Those of the tasks that this installation has."""
    return {name: case for name, case in CASES.items() if name in TASKS and (not only or name in only)}


def size_of(scale: str) -> Scale:
    """How much of it, refused where this machine cannot run it."""
    size = SCALES[scale]
    if size.device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"scale {scale} without a GPU", "CUDA", "use --scale quick")
    return size


def grid(scale: str, chosen: Mapping[str, Case]) -> dict[str, Any]:
    """Tasks x methods x sparsities x seeds, as a grid file would say it."""
    size = SCALES[scale]
    options = {"lottery": f",rate={_RATE}", "synflow": f",iterations={size.synflow}"}
    methods = [method + options.get(method, "") for method in METHODS]
    return {
        "base": {"device": size.device, "prune.layer_quota": _QUOTA},
        "axes": {"task": list(chosen), "prune": methods, "sparsity": list(SPARSITIES), "seed": list(range(size.seeds))},
        "task": {name: dict(getattr(case, scale)) for name, case in chosen.items()},
    }


def recipe(scale: str) -> str:
    """In words, what a reader must know to compare the methods."""
    size = SCALES[scale]
    return (
        f"{size.seeds} seeds; SynFlow in {size.synflow} rounds; lottery tickets lose {_RATE:.0%} of what is left a "
        f"round; every layer keeps at least {_QUOTA:.0%} of its weights; a mask that cuts an output off is refused."
    )
