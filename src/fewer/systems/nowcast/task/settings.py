"""Every choice of the nowcast task, with its unit."""

from __future__ import annotations

from dataclasses import dataclass

from fewer.core.errors import UserError
from fewer.core.settings import check_choices, check_ranges, setting
from fewer.systems.nowcast.task.losses import LOSSES

__all__ = ["ADAPTATIONS", "GENERATED_SIZE", "MODELS", "OWN_LEADS", "OWN_SEEN", "Settings"]

# the width of each model: ours, and what the paper's and the starter kit's had in the competition
MODELS: dict[str, int] = {"drift": 16, "focus": 32, "baseline": 32, "improved": 32, "swin": 24, "vivit": 20}
ADAPTATIONS = ("interleave", "channels", "upsample", "upsample_paper")
GENERATED_SIZE = 84
OWN_SEEN, OWN_LEADS = 4, 8


@dataclass(frozen=True)
class Settings:
    """Where the weather comes from, the model, and what it minimises."""

    data: str = setting("", "folder of your own files or of the competition's; empty: generated weather")
    bands: tuple[str, ...] = setting((), "own files: bands to see, in this order; none: all there are")
    seen: int = setting(0, f"own files: images seen; 0: {OWN_SEEN}")
    leads: int = setting(0, f"own files: maps forecast; 0: {OWN_LEADS}")
    step_minutes: float = setting(0.0, "own files: minutes between images; 0: as the files have", "min")
    regions: tuple[str, ...] = setting((), "regions by name; none: all there are, or the competition's core")
    years: tuple[int, ...] = setting((), "years of the folder; none: all there are")
    cache: str = setting("", "folder for packed frames of the data, filled as they are first read")
    literal: bool = setting(False, "missing pixels of the data are 0 K, as in the starter kit, not the band's mean")
    size: int = setting(0, f"side of both grids; 0: the folder's, or {GENERATED_SIZE} where generated", "pixels")
    train_windows: int = setting(160, "generated windows to learn from")
    validation_windows: int = setting(32, "generated windows to choose by")
    test_windows: int = setting(48, "generated windows to judge by")
    weather_seed: int = setting(0, "seed of the generated weather")
    weather_device: str = setting("cpu", "where weather is generated: cpu or cuda, which draw different weather")
    rain_mm_per_hour: float = setting(0.2, "rain is at least this; 0: anything above 0", "mm/h")
    model: str = setting("drift", "one of " + ", ".join(MODELS))
    width: int = setting(0, "channels of the first level (vivit: square root of the token); 0: the model's own")
    adaptation: str = setting("interleave", "how swin makes 32 of 4 images: " + ", ".join(ADAPTATIONS))
    transposed: bool = setting(False, "improved: transposed convolutions instead of resize and convolution")
    gates: bool = setting(True, "improved: attention gates on the skip connections")
    deltas: bool = setting(False, "predict the change from one lead time to the next (temporal shift)")
    missing: bool = setting(False, "tell the model which pixels were missing, as one more channel")
    dropout: float | None = setting(None, "share dropped; none: the model's own (U-Nets 0.4, focus and drift 0.1)")
    loss: str = setting("bce", "one of " + ", ".join(LOSSES))
    positive_weight: float = setting(0.0, "weight of rain in the loss; 0: ln(1 / wet share of the training data)")
    augment: bool = setting(False, "turn and mirror training samples")
    checkpoint: bool = setting(False, "recompute activations in the backward pass: less memory, more time")
    train_on_all: bool = setting(False, "learn from the validation windows too; metrics then say so")

    def __post_init__(self) -> None:
        check_choices(self, {"model": tuple(MODELS), "adaptation": ADAPTATIONS, "loss": tuple(LOSSES)})
        check_ranges(self, [each for each in _RANGES if getattr(self, each[0]) is not None])
        if not self.data and self.size and (self.size % 6 or not 24 <= self.size <= 1512):
            raise UserError(f"size {self.size}", "a multiple of 6 from 24 to 1512: six radar pixels a satellite pixel")
        if not self.data and (self.bands or self.seen or self.leads or self.step_minutes):
            raise UserError("bands, seen, leads or step_minutes of generated weather", "files of your own", "data=DIR")
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


_RANGES = (
    ("train_windows", 1, 10**7),
    ("validation_windows", 1, 10**7),
    ("test_windows", 1, 10**7),
    ("weather_seed", 0, 2**31 - 1),
    ("size", 0, 1512),
    ("seen", 0, 48),
    ("leads", 0, 96),
    ("step_minutes", 0, 360),
    ("rain_mm_per_hour", 0, 128),
    ("width", 0, 1024),
    ("dropout", 0, 0.95),
    ("positive_weight", 0, 1e4),
)
