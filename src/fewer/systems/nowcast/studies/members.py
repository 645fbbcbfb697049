"""Who takes part in the nowcast studies: the paper's models, one for each row of its tables, and ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fewer.core.errors import UserError

__all__ = ["LONGER", "MEMBERS", "QUICK", "ROWS", "UPWIND", "VOTERS", "Member", "Paper", "member"]

Paper = tuple[float, float, float]  # IoU: total, 2019, 2020


@dataclass(frozen=True)
class Member:
    """One model with one recipe."""

    name: str
    title: str  # as the table says it
    settings: dict[str, Any]
    optimizer: str = "adamw"
    precision: str = ""  # empty: the scale's own
    seed: int = 0  # beside the scale's own
    longer: float = 1.0  # times the samples of the others
    paper: Paper | None = None  # Table 1
    heldout: Paper | None = None  # Table 2


_BASELINE, _IMPROVED, _SWIN = {"model": "baseline"}, {"model": "improved"}, {"model": "swin"}
_CHANNELS, _VIVIT, _DRIFT = {**_SWIN, "adaptation": "channels"}, {"model": "vivit"}, {"model": "drift"}
_ALL = {"train_on_all": True}
MEMBERS: dict[str, Member] = {
    one.name: one
    for one in (
        # the rows of the paper's Table 1, in its order
        Member("baseline", "baseline, bce", _BASELINE, paper=(0.213, 0.241, 0.184), heldout=(0.255, 0.259, 0.251)),
        Member("baseline-iou", "baseline, IoU loss", {**_BASELINE, "loss": "iou_paper"}, paper=(0.190, 0.210, 0.171)),
        Member("baseline-2", "baseline, bce, second seed", _BASELINE, seed=1, paper=(0.213, 0.243, 0.183)),
        Member("baseline-all", "baseline, bce, train all", {**_BASELINE, **_ALL}, paper=(0.222, 0.252, 0.192)),
        Member("baseline-all-long", "baseline, bce, train all, 2.16 times as long", {**_BASELINE, **_ALL},
               longer=2.16, paper=(0.166, 0.185, 0.147)),
        Member("improved-transposed-all", "improved, bce, train all", {**_IMPROVED, **_ALL, "transposed": True},
               paper=(0.245, 0.274, 0.217), heldout=(0.270, 0.261, 0.278)),
        Member("improved-all", "improved without transposed convolutions, bce, train all", {**_IMPROVED, **_ALL},
               paper=(0.246, 0.267, 0.225)),
        Member("swin-iou", "Swin-UNETR, IoU loss", {**_SWIN, "loss": "iou_paper"}, paper=(0.190, 0.206, 0.174)),
        Member("swin-dice", "Swin-UNETR, dice and focal", {**_SWIN, "loss": "dice_focal_paper"},
               paper=(0.210, 0.228, 0.192)),
        Member("swin-float32", "Swin-UNETR, bce, 32 bit", _SWIN, precision="float32", paper=(0.252, 0.262, 0.241),
               heldout=(0.281, 0.283, 0.280)),
        Member("swin", "Swin-UNETR, bce, 16 bit", _SWIN, paper=(0.252, 0.253, 0.250)),
        Member("swin-all", "Swin-UNETR, bce, train all", {**_SWIN, **_ALL}, paper=(0.249, 0.261, 0.237)),
        Member("channels", "Swin-UNETR, channel convolution, bce", _CHANNELS, paper=(0.244, 0.258, 0.230)),
        Member("upsample", "Swin-UNETR, upsample, bce", {**_SWIN, "adaptation": "upsample_paper"},
               paper=(0.224, 0.256, 0.192)),
        Member("vivit", "ViViT, bce", _VIVIT, paper=(0.193, 0.213, 0.173)),
        # what the paper voted with, or tried, without a row of its own
        Member("swin-adabelief", "Swin-UNETR, bce, AdaBelief", _SWIN, "adabelief"),
        Member("channels-adabelief", "Swin-UNETR, channel convolution, bce, AdaBelief", _CHANNELS, "adabelief"),
        Member("vivit-deltas", "ViViT, bce, temporal shift", {**_VIVIT, "deltas": True}),
        # one thing changed
        Member("baseline-iou-cured", "baseline, our IoU loss", {**_BASELINE, "loss": "iou"}),
        Member("baseline-plain", "baseline, bce, no dropout", {**_BASELINE, "dropout": 0.0}),
        Member("improved", "improved without transposed convolutions, bce", _IMPROVED),
        Member("improved-plain", "improved without transposed convolutions, bce, no dropout",
               {**_IMPROVED, "dropout": 0.0}),
        Member("improved-adabelief", "improved without transposed convolutions, bce, AdaBelief", _IMPROVED,
               "adabelief"),
        # ours
        Member("focus", "geometry-aware, bce", {"model": "focus"}),
        Member("focus-deltas", "geometry-aware, bce, temporal shift", {"model": "focus", "deltas": True}),
        Member("drift", "geometry-aware, upwind, bce", _DRIFT),
        Member("drift-2", "geometry-aware, upwind, bce, second seed", _DRIFT, seed=1),
        Member("drift-3", "geometry-aware, upwind, bce, third seed", _DRIFT, seed=2),
        Member("drift-adabelief", "geometry-aware, upwind, bce, AdaBelief", _DRIFT, "adabelief"),
    )
}  # fmt: skip

# the paper's vote: improved baseline, interleave and channel convolution with both optimisers; those that there are
VOTERS = (
    "improved-transposed-all", "improved", "improved-adabelief", "swin", "swin-adabelief", "channels",
    "channels-adabelief",
)  # fmt: skip
# ours: what `fewer train nowcast` makes, from three seeds and with the other optimiser
UPWIND = ("drift", "drift-2", "drift-3", "drift-adabelief")
# every row of Table 1, what the paper voted with, temporal shift on a model of the paper's, and ours
ROWS = (
    *(name for name, one in MEMBERS.items() if one.paper), "swin-adabelief", "channels-adabelief", "vivit-deltas",
    "drift",
)  # fmt: skip
LONGER = (
    "baseline", "baseline-iou-cured", "baseline-plain", "improved", "improved-plain", "improved-adabelief", "swin",
    "swin-adabelief", "channels", "channels-adabelief", "vivit", "focus", "focus-deltas", *UPWIND,
)  # fmt: skip
QUICK = (
    "baseline", "baseline-iou", "improved-transposed-all", "swin", "swin-adabelief", "vivit", "focus", "drift",
)  # fmt: skip


def member(name: str) -> Member:
    """By name."""
    if name not in MEMBERS:
        raise UserError(f"member {name!r}", "one of " + ", ".join(MEMBERS))
    return MEMBERS[name]
