"""Who takes part in the nowcast studies: the paper's models, ours, and what each is trained on at each scale."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from fewer.core.engines.optimizer import Optimizer
from fewer.core.errors import UserError
from fewer.systems.nowcast.task.settings import Settings

__all__ = ["MEMBERS", "SCALES", "UPWIND", "VOTERS", "Member", "Scale", "member"]


@dataclass(frozen=True)
class Member:
    """One model with one recipe."""

    name: str
    title: str  # as the table says it
    settings: dict[str, Any]
    optimizer: str = "adamw"
    precision: str = ""  # empty: the scale's own
    seed: int = 0  # beside the scale's own
    paper: tuple[float, float, float] | None = None  # Table 1: total, 2019, 2020


@dataclass(frozen=True)
class Scale:
    """How much weather, how large, how long. Every member sees the same number of samples of the same windows."""

    size: int
    samples: int
    batch: int
    windows: dict[str, int]  # by split
    widths: dict[str, int] = field(default_factory=dict)  # by model; left out: the model's own
    precision: str = "float32"
    compile: bool = False
    rates: tuple[float, float] = (1e-3, 4e-4)  # learning rate of convolutional models and of transformers
    seed: int = 0

    def settings(self, member: Member) -> Settings:
        model = member.settings["model"]
        common: dict[str, Any] = {"size": self.size, "width": self.widths.get(model, 0), "weather_seed": self.seed}
        common |= {f"{split}_windows": self.windows[split] for split in ("train", "validation", "test")}
        return Settings(**common, **member.settings)

    def optimizer(self, member: Member) -> Optimizer:
        """One schedule for all: the competition's decay and clipping, a short rise, a cosine fall to zero."""
        rate = self.rates[member.settings["model"] in ("swin", "vivit")]
        steps = max(self.samples // self.batch, 1)
        common = Optimizer("adamw", lr=rate, weight_decay=2e-2, clip_value=2.0, warmup=steps // 20, decay_from=0.3)
        if member.optimizer == "adamw":
            return common
        return dataclasses.replace(common, kind="adabelief", epsilon=1e-16, rectify=True)


SCALES = {
    "quick": Scale(
        size=24,
        samples=48,
        batch=4,
        windows={"train": 56, "validation": 28, "test": 28, "heldout": 28},
        widths={"baseline": 4, "improved": 4, "swin": 12, "vivit": 8, "focus": 8, "drift": 4},
    ),
    "full": Scale(
        size=252,
        samples=3000,
        batch=4,
        windows={"train": 1400, "validation": 42, "test": 70, "heldout": 42},
        precision="bfloat16",
    ),
}

_SWIN, _IMPROVED = {"model": "swin"}, {"model": "improved"}
_ALL = {"train_on_all": True}
MEMBERS: dict[str, Member] = {
    one.name: one
    for one in (
        Member("baseline", "baseline, bce", {"model": "baseline"}, paper=(0.213, 0.241, 0.184)),
        Member("baseline-iou", "baseline, IoU loss", {"model": "baseline", "loss": "iou"}, paper=(0.190, 0.210, 0.171)),
        Member("baseline-all", "baseline, bce, train all", {"model": "baseline", **_ALL}, paper=(0.222, 0.252, 0.192)),
        Member("baseline-plain", "baseline, bce, no dropout", {"model": "baseline", "dropout": 0.0}),
        Member("improved-transposed", "improved, transposed convolution, bce", {**_IMPROVED, "transposed": True},
               paper=(0.245, 0.274, 0.217)),
        Member("improved", "improved, bce", _IMPROVED, paper=(0.246, 0.267, 0.225)),
        Member("improved-plain", "improved, bce, no dropout", {**_IMPROVED, "dropout": 0.0}),
        Member("improved-adabelief", "improved, bce, AdaBelief", _IMPROVED, "adabelief"),
        Member("swin-iou", "Swin-UNETR, IoU loss", {**_SWIN, "loss": "iou"}, paper=(0.190, 0.206, 0.174)),
        Member("swin-dice", "Swin-UNETR, dice and focal", {**_SWIN, "loss": "dice_focal"}, paper=(0.210, 0.228, 0.192)),
        Member("swin", "Swin-UNETR, bce", _SWIN, paper=(0.252, 0.262, 0.241)),
        Member("swin-adabelief", "Swin-UNETR, bce, AdaBelief", _SWIN, "adabelief"),
        Member("swin-float32", "Swin-UNETR, bce, 32 bit", _SWIN, precision="float32"),
        Member("swin-all", "Swin-UNETR, bce, train all", {**_SWIN, **_ALL}, paper=(0.249, 0.261, 0.237)),
        Member("channels", "Swin-UNETR, channel convolution, bce", {**_SWIN, "adaptation": "channels"},
               paper=(0.244, 0.258, 0.230)),
        Member("channels-adabelief", "Swin-UNETR, channel convolution, bce, AdaBelief",
               {**_SWIN, "adaptation": "channels"}, "adabelief"),
        Member("upsample", "Swin-UNETR, upsample, bce", {**_SWIN, "adaptation": "upsample"},
               paper=(0.224, 0.256, 0.192)),
        Member("vivit", "ViViT, bce", {"model": "vivit"}, paper=(0.193, 0.213, 0.173)),
        Member("focus", "geometry-aware, bce", {"model": "focus"}),
        Member("focus-adabelief", "geometry-aware, bce, AdaBelief", {"model": "focus"}, "adabelief"),
        Member("focus-deltas", "geometry-aware, bce, temporal shift", {"model": "focus", "deltas": True}),
        Member("drift", "geometry-aware, upwind, bce", {"model": "drift"}),
        Member("drift-2", "geometry-aware, upwind, bce, second seed", {"model": "drift"}, seed=1),
        Member("drift-3", "geometry-aware, upwind, bce, third seed", {"model": "drift"}, seed=2),
        Member("drift-adabelief", "geometry-aware, upwind, bce, AdaBelief", {"model": "drift"}, "adabelief"),
        Member("swin-deltas", "Swin-UNETR, bce, temporal shift", {**_SWIN, "deltas": True}),
    )
}  # fmt: skip

# the paper's vote: improved baseline, interleave and channel convolution, each with both optimisers
VOTERS = ("improved", "improved-adabelief", "swin", "swin-adabelief", "channels", "channels-adabelief")
# ours: what `fewer train nowcast` makes, from three seeds and with the other optimiser
UPWIND = ("drift", "drift-2", "drift-3", "drift-adabelief")


def member(name: str) -> Member:
    """By name."""
    if name not in MEMBERS:
        raise UserError(f"member {name!r}", "one of " + ", ".join(MEMBERS))
    return MEMBERS[name]
