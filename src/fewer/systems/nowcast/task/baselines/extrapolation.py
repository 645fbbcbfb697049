"""Rain carried on along its motion: the forecast that every network has to beat.

Pixels are traced back along steady motion (semi-Lagrangian), so the last image is read once and never blurred by
repeated interpolation. What is read is whether it rained; as nobody knows where exactly it will be, that is blurred
ever more with lead time and becomes a probability. The decision which probability is rain maximises the expected IoU
of the forecast itself: it uses nothing but the forecast.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra
from fewer.systems.nowcast.task.baselines.motion import Field, carried, motion

__all__ = [
    "SPREAD_KM_PER_MINUTE",
    "decision",
    "displacements",
    "extrapolate",
    "pysteps_extrapolate",
    "pysteps_installed",
    "spread",
]

# How fast the position of rain becomes uncertain; tried 0.1 to 0.2 on five radar events
SPREAD_KM_PER_MINUTE = 0.2


def displacements(moving: Field, steps: int) -> Iterator[Field]:
    """Where each pixel's air has come from after 1, 2, ... steps, as rows and columns travelled: (2, height, width)."""
    travelled = np.zeros_like(moving)
    for _ in range(steps):
        # the midpoint rule: the motion half a step further back stands for the whole step
        here = np.stack([carried(part, travelled) for part in moving])
        travelled = travelled + np.stack([carried(part, travelled + here / 2) for part in moving])
        yield travelled


def extrapolate(
    rates: NDArray[np.floating[Any]],
    leads: int,
    *,
    step_minutes: float = 15.0,
    pixel_km: float = 2.0,
    rain_mm_per_hour: float = 0.2,
    moving: Field | None = None,
) -> Field:
    """(leads, height, width): probability of rain from the last images, (time, height, width) in mm/h, NaN unknown.

    What comes from outside the map is forecast dry, as everywhere in this field. Without `moving` the motion of the
    last two images is used.
    """
    last = rates[-1]
    moving = motion(rates[-2:]) if moving is None else moving
    known = np.isfinite(last).astype(np.float32)
    raining = (np.nan_to_num(last) >= max(rain_mm_per_hour, 1e-6)).astype(np.float32)
    found = []
    for lead, travelled in enumerate(displacements(moving, leads), start=1):
        there, seen = carried(raining, travelled, 0.0), carried(known, travelled, 0.0)
        # the share of rain around each pixel among what is known there
        share, whole = (spread(part, lead, step_minutes, pixel_km) for part in (there, seen))
        found.append(np.where(seen > 0, np.clip(share / np.maximum(whole, 1e-3), 0, 1), 0).astype(np.float32))
    return np.stack(found)


def spread(field: Field, steps: int, step_minutes: float, pixel_km: float) -> Field:
    """The field blurred as far as its place is uncertain after that many steps."""
    from scipy.ndimage import gaussian_filter

    width = SPREAD_KM_PER_MINUTE * step_minutes * steps / pixel_km
    blurred: Field = gaussian_filter(field, width, mode="nearest", truncate=3) if width > 0 else field
    return blurred


def decision(probability: Field) -> float:
    """The threshold with the largest expected IoU if the probabilities are right.

    With pixels sorted by probability p, calling the first n rain gives sum p / (n + sum of the rest's p).
    """
    falling = np.sort(probability[probability > 0.01], axis=None)[::-1]
    if not falling.size:
        return 1.0
    caught = np.cumsum(falling, dtype=np.float64)
    expected = caught / (np.arange(1, len(falling) + 1) + caught[-1] - caught)
    return float(falling[int(expected.argmax())])


def pysteps_installed() -> bool:
    """With opencv, which it installs without and needs for motion."""
    return all(importlib.util.find_spec(name) is not None for name in ("pysteps", "cv2"))


def pysteps_extrapolate(rates: NDArray[np.floating[Any]], leads: int) -> Field:
    """(leads, height, width): rates in mm/h from pysteps' Lucas-Kanade and semi-Lagrangian methods; dry from outside.

    As its own example does it: motion from decibels, then the rates themselves are carried.
    """
    if not pysteps_installed():
        raise MissingExtra(
            "pysteps is not installed", "pysteps and opencv", "pip install pysteps opencv-python-headless"
        )
    from pysteps.extrapolation.semilagrangian import extrapolate as semilagrangian
    from pysteps.motion.lucaskanade import dense_lucaskanade

    filled = np.nan_to_num(np.asarray(rates, np.float64))
    decibels = np.where(filled < 0.1, -15.0, 10 * np.log10(np.maximum(filled, 0.1)))
    moving = dense_lucaskanade(decibels, verbose=False)
    carried_on: Field = np.nan_to_num(semilagrangian(filled[-1], moving, leads)).astype(np.float32)
    return carried_on
