"""What a model sees and is judged by: one hour of images, eight hours of rain, and where either is missing."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

__all__ = ["FACTOR", "LEADS", "REACH", "SEEN", "Windows", "center"]

SEEN = 4  # images seen, 15 minutes apart
LEADS = 32  # images to predict, from 15 minutes to 8 hours ahead
FACTOR = 6  # radar pixels (2 km) in a satellite pixel (12 km)
REACH = 45  # satellite pixels around the radar's: eight hours at some 65 km/h


class Windows(NamedTuple):
    """Both grids have the same number of pixels, 252 in the competition; the radar covers the satellite's centre."""

    satellite: Tensor  # (batch, SEEN, bands, size, size), standardised; a missing pixel is 0, the band's mean
    missing: Tensor  # (batch, SEEN, size, size), 1 where any band was missing
    rate: Tensor  # (batch, LEADS, size, size), mm/h; 0 where dry or not valid
    valid: Tensor  # (batch, LEADS, size, size), 1 where a radar looked
    place: Tensor  # (batch,), integer: which region-year it comes from


def center(size: int) -> slice:
    """The satellite's rows (and columns) that the radar covers: 105 to 146 of 252."""
    inner = size // FACTOR
    first = (size - inner) // 2
    return slice(first, first + inner)
