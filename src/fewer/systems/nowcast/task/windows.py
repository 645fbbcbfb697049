"""What a model sees and is judged by: one hour of images, eight hours of rain, and where either is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from fewer.systems.nowcast.task.bands import BANDS

__all__ = ["COMPETITION", "FACTOR", "LEADS", "REACH", "SEEN", "Geometry", "Windows", "center"]

SEEN = 4  # images seen, 15 minutes apart
LEADS = 32  # images to predict, from 15 minutes to 8 hours ahead
FACTOR = 6  # radar pixels (2 km) in a satellite pixel (12 km)
REACH = 45  # satellite pixels around the radar's: eight hours at some 65 km/h


@dataclass(frozen=True)
class Geometry:
    """How many images of what are seen, how many maps are forecast, and how the two grids lie to each other."""

    seen: int = SEEN
    leads: int = LEADS
    factor: int = FACTOR  # pixels of the forecast along a pixel of what is seen; 1: one grid, as radar to radar
    step_minutes: float = 15.0
    bands: tuple[str, ...] = tuple(band.name for band in BANDS)

    @property
    def moving(self) -> int:
        """The band by which clouds or rain are seen to move: the window channel where there is one, else the first."""
        return self.bands.index("IR_108") if "IR_108" in self.bands else 0

    @property
    def hours(self) -> list[int]:
        """Which hour each lead time belongs to, from 1."""
        return [-(-round(self.step_minutes * (k + 1) * 60) // 3600) for k in range(self.leads)]


COMPETITION = Geometry()


class Windows(NamedTuple):
    """Both grids have the same number of pixels, 252 in the competition; the radar covers the satellite's centre."""

    satellite: Tensor  # (batch, SEEN, bands, size, size), standardised; a missing pixel is 0, the band's mean
    missing: Tensor  # (batch, SEEN, size, size), 1 where any band was missing
    rate: Tensor  # (batch, LEADS, size, size), mm/h; 0 where dry or not valid
    valid: Tensor  # (batch, LEADS, size, size), 1 where a radar looked
    place: Tensor  # (batch,), integer: which region-year it comes from


def center(size: int, factor: int = FACTOR) -> slice:
    """The satellite's rows (and columns) that the radar covers: 105 to 146 of 252."""
    inner = size // factor
    first = (size - inner) // 2
    return slice(first, first + inner)
