"""The paper's trainings in the words of `fewer train`, one for each that stands in its Tables 1 and 2.

From the paper where it says, else from the configurations that its authors published: rate, decay, clipping, batch,
dropout, weight of rain. Epochs are those of the paper's rows, which count from 0: "Epoch 3" has seen four. AdaBelief
had its library's defaults. An epoch is every window of seven regions and two years, train-on-all adds 840.
Automatic mixed precision, the paper's 16 bit, is bfloat16 here. With the competition's files say `data` and `literal`
beside a preset; without them the windows are drawn when they are asked for.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["EPOCHS", "PRESETS", "WINDOWS"]

WINDOWS = {"train": 228_928, "validation": 840, "test": 840, "heldout": 840}
_ADAMW = "adamw,lr=1e-4,weight_decay=2e-2,clip_value=2,warmup=0,decay_from=1"
_ADABELIEF = "adabelief,lr=1e-3,epsilon=1e-16,weight_decay=0,clip_value=2,rectify=true,warmup=0,decay_from=1"
_ALL: Mapping[str, Any] = {"train_on_all": True}
_BASELINE: Mapping[str, Any] = {"model": "baseline"}
_IMPROVED: Mapping[str, Any] = {"model": "improved", **_ALL}
_SWIN: Mapping[str, Any] = {"model": "swin"}
_CHANNELS: Mapping[str, Any] = {**_SWIN, "adaptation": "channels"}

EPOCHS = {
    "baseline": 24, "baseline-2": 24, "baseline-iou": 26, "baseline-all": 25, "baseline-all-long": 54,
    "improved-transposed-all": 16, "improved-all": 34, "swin-iou": 3, "swin-dice": 3, "swin-float32": 4, "swin": 4,
    "swin-all": 5, "channels": 2, "upsample": 2, "vivit": 3, "vivit-deltas": 3, "swin-adabelief": 5,
    "channels-adabelief": 5,
}  # fmt: skip
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "baseline": _BASELINE,
    "baseline-2": _BASELINE,
    "baseline-iou": {**_BASELINE, "loss": "iou_paper"},
    "baseline-all": {**_BASELINE, **_ALL},
    "baseline-all-long": {**_BASELINE, **_ALL},
    "improved-transposed-all": {**_IMPROVED, "transposed": True},
    "improved-all": _IMPROVED,
    "swin-iou": {**_SWIN, "loss": "iou_paper"},
    "swin-dice": {**_SWIN, "loss": "dice_focal_paper"},
    "swin-float32": _SWIN,
    "swin": {**_SWIN, "checkpoint": True},  # the authors' 16-bit trainings recomputed activations
    "swin-all": {**_SWIN, **_ALL},
    "channels": _CHANNELS,
    "upsample": {**_SWIN, "adaptation": "upsample_paper"},
    "vivit": {"model": "vivit"},
    "vivit-deltas": {"model": "vivit", "deltas": True},
    "swin-adabelief": {**_SWIN, **_ALL},
    "channels-adabelief": {**_CHANNELS, **_ALL},
}
_BATCH = {"baseline": 40, "improved": 12, "swin": 7, "vivit": 4}

PRESETS: dict[str, dict[str, Any]] = {
    f"paper-{name}": {
        "settings": {
            "size": 252, "loss": "bce_paper", "positive_weight": 2.577389,
            **{f"{split}_windows": WINDOWS[split] for split in ("train", "validation", "test")}, **settings,
        },
        "steps": EPOCHS[name] * (WINDOWS["train"] + 840 * settings.get("train_on_all", 0)) // _BATCH[settings["model"]],
        "batch": _BATCH[settings["model"]],
        "optimizer": _ADABELIEF if "adabelief" in name else _ADAMW,
        "precision": "bfloat16" if name == "swin" else "float32",
        "seeds": 1 if name == "baseline-2" else 0,
    }
    for name, settings in _SETTINGS.items()
}  # fmt: skip
PRESETS["paper"] = PRESETS["paper-swin-float32"]  # the paper's best single model
