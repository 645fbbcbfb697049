"""How much weather, how large, how long: every nowcast study at every scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.run.options import job_of
from fewer.studies.order import Order
from fewer.systems.nowcast.presets import EPOCHS, PRESETS, WINDOWS
from fewer.systems.nowcast.studies.members import LONGER, QUICK, ROWS, UPWIND, Member
from fewer.systems.nowcast.task.settings import Settings

__all__ = ["SCALES", "Scale", "members_of", "scale_of"]


@dataclass(frozen=True)
class Scale:
    """Every member sees the same number of samples of the same windows, unless each is trained as in the paper."""

    size: int
    samples: int  # paper: the training windows, an epoch
    batch: int  # paper: a member's own
    windows: dict[str, int]  # by split
    widths: dict[str, int] = field(default_factory=dict)  # by model; left out: the model's own
    precision: str = "float32"  # paper: a member's own
    compile: bool = False
    rates: tuple[float, float] = (1e-3, 4e-4)  # learning rate of convolutional models and of transformers
    seed: int = 0
    paper: bool = False  # each member by its preset

    def settings(self, member: Member) -> Settings:
        model = member.settings["model"]
        common: dict[str, Any] = {"size": self.size, "width": self.widths.get(model, 0), "weather_seed": self.seed}
        common |= {f"{split}_windows": self.windows[split] for split in ("train", "validation", "test")}
        if self.paper:
            preset = _preset(member)["settings"]
            common |= {key: preset[key] for key in ("loss", "positive_weight", "checkpoint") if key in preset}
        return Settings(**common | member.settings)

    def training(self, member: Member, device: str) -> Training:
        """How a member is trained: one schedule for all, or the paper's."""
        if self.paper:
            words = _preset(member)
            epochs, seen = EPOCHS.get(member.name, _EPOCHS), self.windows["train"]
            seen += self.windows["validation"] * bool(member.settings.get("train_on_all"))
            steps = max(epochs * seen // words["batch"], 1)
            found = job_of("nowcast", {key: words[key] for key in ("batch", "optimizer", "precision")}).training
            return dataclasses.replace(found, steps=steps, device=device)
        precision = member.precision or self.precision
        steps = max(int(self.samples * member.longer) // self.batch, 1)
        return Training(
            steps, self.batch, self._optimizer(member, steps), device, precision=precision, compile=self.compile
        )

    def _optimizer(self, member: Member, steps: int) -> Optimizer:
        """The competition's decay and clipping, a short rise, a cosine fall to zero."""
        rate = self.rates[member.settings["model"] in ("swin", "vivit")]
        common = Optimizer("adamw", lr=rate, weight_decay=2e-2, clip_value=2.0, warmup=steps // 20, decay_from=0.3)
        if member.optimizer == "adamw":
            return common
        return dataclasses.replace(common, kind="adabelief", epsilon=1e-16, rectify=True)


def _preset(member: Member) -> dict[str, Any]:
    """Models of ours are trained as the paper's best."""
    return PRESETS.get(f"paper-{member.name}", PRESETS["paper"])


_EPOCHS = EPOCHS["swin-float32"]  # of models that the paper has no row for
_SMALL = Scale(
    size=24, samples=48, batch=4, windows={"train": 56, "validation": 28, "test": 28, "heldout": 28},
    widths={"baseline": 4, "improved": 4, "swin": 12, "vivit": 8, "focus": 8, "drift": 4},
)  # fmt: skip
_PAPER = Scale(size=252, samples=WINDOWS["train"], batch=0, windows=dict(WINDOWS), paper=True)
_FULL = Scale(
    size=60, samples=4000, batch=4, windows={"train": 7840, "validation": 560, "test": 1120, "heldout": 560},
    precision="bfloat16",
)  # fmt: skip
_LONGER = dataclasses.replace(
    _FULL, samples=42_000, windows={"train": 7840, "validation": 1120, "test": 2240, "heldout": 1120}, compile=True
)
_SCARCE = dataclasses.replace(_LONGER, samples=28_000, windows={**_LONGER.windows, "train": 1400})
_DRIFT = dataclasses.replace(
    _FULL, samples=12_000, windows={**_FULL.windows, "train": 12_000}, precision="float32"
)  # made on a CPU

SCALES = {"quick": _SMALL, "full": _FULL, "paper": _PAPER}
_FULLS: Mapping[str, Scale] = {"nowcast/longer": _LONGER, "nowcast/scarce": _SCARCE, "nowcast/drift": _DRIFT}
_GEOMETRY = ("focus", *UPWIND)
_MEMBERS = {"nowcast/longer": LONGER, "nowcast/scarce": _GEOMETRY, "nowcast/drift": _GEOMETRY}


def scale_of(order: Order) -> Scale:
    """What the study takes at that scale by itself; where windows are few on purpose, the paper's scale has as few."""
    full, found = _FULLS.get(order.study, SCALES["full"]), SCALES[order.scale]
    if order.scale == "paper" and order.study in ("nowcast/scarce", "nowcast/drift"):
        return dataclasses.replace(found, windows={**found.windows, "train": full.windows["train"]})
    return full if order.scale == "full" else found


def members_of(order: Order) -> tuple[str, ...]:
    """Who is trained for a study by default; others take part if their pieces are there."""
    wanted = _MEMBERS.get(order.study, ROWS)
    if order.scale != "quick" or wanted is _GEOMETRY:
        return wanted
    return tuple(name for name in QUICK if wanted is ROWS or name in wanted)
