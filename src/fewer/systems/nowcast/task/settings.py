"""Every choice of the nowcast task, with its unit, and the paper's models as named constructors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fewer.core.errors import UserError
from fewer.core.settings import check_choices, check_ranges
from fewer.systems.nowcast.task.losses import LOSSES

__all__ = ["GENERATED_SIZE", "MODELS", "Settings"]

# the width of each model: ours, and what the paper's and the starter kit's had in the competition
MODELS: dict[str, int] = {"drift": 16, "focus": 32, "baseline": 32, "improved": 32, "swin": 24, "vivit": 20}
ADAPTATIONS = ("interleave", "channels", "upsample")
GENERATED_SIZE = 84


def _option(default: Any, text: str, unit: str = "") -> Any:
    return field(default=default, metadata={"help": text, "unit": unit})


@dataclass(frozen=True)
class Settings:
    """Where the weather comes from, the model, and what it minimises."""

    data: str = _option("", "folder in the competition's layout; empty: generated weather")
    regions: tuple[str, ...] = _option((), "regions by name; none: all there are, or the competition's core")
    years: tuple[int, ...] = _option((), "years of the folder; none: all there are")
    cache: str = _option("", "folder for packed frames of the data, filled as they are first read")
    literal: bool = _option(False, "missing pixels of the data are 0 K, as in the starter kit, not the band's mean")
    size: int = _option(0, f"side of both grids; 0: the folder's, or {GENERATED_SIZE} where generated", "pixels")
    train_windows: int = _option(160, "generated windows to learn from")
    validation_windows: int = _option(32, "generated windows to choose by")
    test_windows: int = _option(48, "generated windows to judge by")
    weather_seed: int = _option(0, "seed of the generated weather")
    weather_device: str = _option("cpu", "where weather is generated: cpu or cuda, which draw different weather")
    rain_mm_per_hour: float = _option(0.2, "rain is at least this; 0: anything above 0", "mm/h")
    model: str = _option("drift", "one of " + ", ".join(MODELS))
    width: int = _option(0, "channels of the first level (vivit: square root of the token); 0: the model's own")
    adaptation: str = _option("interleave", "how swin makes 32 of 4 images: " + ", ".join(ADAPTATIONS))
    transposed: bool = _option(False, "improved: transposed convolutions instead of resize and convolution")
    gates: bool = _option(True, "improved: attention gates on the skip connections")
    deltas: bool = _option(False, "predict the change from one lead time to the next (temporal shift)")
    missing: bool = _option(False, "tell the model which pixels were missing, as one more channel")
    dropout: float | None = _option(None, "share dropped; none: the model's own (U-Nets 0.4, focus and drift 0.1)")
    loss: str = _option("bce", "one of " + ", ".join(LOSSES))
    positive_weight: float = _option(0.0, "weight of rain in the loss; 0: ln(1 / wet share of the training data)")
    augment: bool = _option(False, "turn and mirror training samples")
    checkpoint: bool = _option(False, "recompute activations in the backward pass: less memory, more time")
    train_on_all: bool = _option(False, "learn from the validation windows too; metrics then say so")

    def __post_init__(self) -> None:
        check_choices(self, {"model": tuple(MODELS), "adaptation": ADAPTATIONS, "loss": tuple(LOSSES)})
        check_ranges(self, [each for each in _RANGES if getattr(self, each[0]) is not None])
        if self.size and (self.size % 6 or not 24 <= self.size <= 1512):
            raise UserError(f"size {self.size}", "a multiple of 6 from 24 to 1512: six radar pixels a satellite pixel")
        self._check_width()
        if self.literal and not self.data:
            raise UserError("literal with generated weather", "a folder of the competition's files", "--set data=DIR")
        if self.augment and not self.data and self.side % 12:
            raise UserError(f"augment with size {self.side}", "a multiple of 12, so that both grids share their centre")

    def _check_width(self) -> None:
        if self.model == "swin" and self.features % 12:
            raise UserError(f"width {self.width} of swin", "a multiple of 12")
        if self.model == "vivit" and self.features % 2:
            raise UserError(f"width {self.width} of vivit", "an even number: the token is its square")

    @property
    def features(self) -> int:
        """The model's width."""
        return self.width or MODELS[self.model]

    @property
    def side(self) -> int:
        """The size of generated weather."""
        return self.size or GENERATED_SIZE

    @classmethod
    def paper(cls, model: str = "swin", **changes: Any) -> Settings:
        """A model of the paper at the competition's size."""
        return cls(**{"model": model, "size": 252, **changes})


_RANGES = (
    ("train_windows", 1, 10**7),
    ("validation_windows", 1, 10**7),
    ("test_windows", 1, 10**7),
    ("weather_seed", 0, 2**31 - 1),
    ("rain_mm_per_hour", 0, 128),
    ("width", 0, 1024),
    ("dropout", 0, 0.95),
    ("positive_weight", 0, 1e4),
)
