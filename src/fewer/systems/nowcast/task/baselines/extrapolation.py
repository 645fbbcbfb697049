"""Rain carried on along its motion, as probabilities: the forecast that every network has to beat.

Pixels are traced back along steady motion (semi-Lagrangian), so the last image is read once and never blurred by
repeated interpolation. What is read there are the surroundings of the air that will arrive (`surroundings`), from
which probabilities of each strength of rain follow (`prognosis`). Two things are made of them: a decision, rain or
none, that maximises the expected IoU of the forecast itself, and a rate field whose areas above each rate are those
that the probabilities expect.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.baselines.motion import Field, carried, finer, smooth_motion
from fewer.systems.nowcast.task.baselines.pace import Pace, pace
from fewer.systems.nowcast.task.baselines.prognosis import THRESHOLDS, Weights, exceedance
from fewer.systems.nowcast.task.baselines.surroundings import Reader, strength, surroundings

__all__ = ["Outlook", "decision", "displacements", "extrapolate", "outlook", "paths", "recent"]

_BETWEEN = 15.0  # minutes between the images that motion and change are read from, as near as there are
_COMPARED = 3  # images
_STEP = 15.0  # minutes that motion is followed at once
_COARSE = 4  # pixels a side that share a path: motion is smooth
_RAIN = THRESHOLDS.index(0.2)
_HEAVIER = (20.0, 50.0, 100.0)  # mm/h: no probability was fitted to them, but the rate field keeps their areas
_TEXTURE = 0.5  # how much the carried image counts beside the expectation
_SEEN_AROUND = 0.3  # share of the surroundings, half of which lie beyond an edge
_SHADES = 4096  # of probability, between which nobody tells
_PIXELS = 1 << 13  # at a time: what they need stays in the cache


@dataclass(frozen=True)
class Outlook:
    """Lead times are those asked for; fields are (leads, height, width), NaN where no radar has looked."""

    probability: Field  # (kept, leads, height, width), of at least each of the rates that were kept
    rate: Field  # mm/h
    rain: NDArray[np.bool_]  # at least 0.2 mm/h, decided
    moving: Field  # (2, height, width): rows and columns in a minute
    kept: tuple[float, ...] = THRESHOLDS

    def at_least(self, rain_mm_per_hour: float) -> Field:
        """Probabilities of one of the rates that were kept."""
        if rain_mm_per_hour not in self.kept:
            raise UserError(f"{rain_mm_per_hour:g} mm/h", f"one of {', '.join(map(str, self.kept))}")
        found: Field = self.probability[self.kept.index(rain_mm_per_hour)]
        return found


def recent(minutes: Sequence[float]) -> list[int]:
    """Which images to compare: the last, and those nearest to a quarter and half an hour before it, as there are."""
    since = np.asarray(minutes, np.float64)
    if len(since) < 2:
        raise UserError("one image", "two or more, to see how rain moves")
    chosen = {int(np.abs(since[-1] - since[:-1] - k * _BETWEEN).argmin()) for k in range(1, _COMPARED)}
    return [*sorted(chosen), len(since) - 1]


@dataclass(frozen=True)
class Sight:
    """What is known of the air when a forecast begins."""

    moving: Field  # (2, height, width): rows and columns in a minute
    around: Field  # (CHANNELS, height, width)
    pace: Pace


def sight(images: NDArray[np.floating[Any]], minutes: Sequence[float], pixel_km: float) -> Sight:
    """From two or more images (time, height, width) in mm/h, NaN unknown: all of them are compared."""
    since = [float(minutes[-1] - minute) for minute in minutes]
    between = since[-2]
    moved = smooth_motion(images, pixel_km, [(a - b) / between for a, b in itertools.pairwise(since)])
    moving = moved / np.float32(between)
    lives = pace(strength(images), np.isfinite(images), moving, since, pixel_km)
    return Sight(moving, surroundings(images, moved, pixel_km), lives)


def outlook(
    rates: NDArray[np.floating[Any]], minutes: Sequence[float], ahead: Sequence[float], *, pixel_km: float,
    keep: Sequence[float] = THRESHOLDS, fitted: Weights | None = None,
) -> Outlook:  # fmt: skip
    """From images (time, height, width) in mm/h, NaN unknown, taken at `minutes`; `ahead` rises, in minutes.

    Steps between images may be uneven. Air from outside the map is taken to be like its edge, ever less surely. Only
    the probabilities of the rates in `keep` are kept: all of them are seven maps a lead time.
    """
    chosen = recent(minutes)
    images = np.asarray(rates)[chosen]
    now = sight(images, [minutes[k] for k in chosen], pixel_km)
    reader = Reader(now.around)
    shape, kept = images.shape[1:], [THRESHOLDS.index(least) for least in keep]
    probability = np.empty((len(kept), len(ahead), *shape), np.float32)
    rate, rain = np.empty((len(ahead), *shape), np.float32), np.empty((len(ahead), *shape), np.bool_)
    dark = ~np.isfinite(images).any(0)
    for k, travelled in enumerate(paths(now.moving, ahead)):
        each, texture = _arriving(reader, travelled, ahead[k], now.pace, pixel_km, fitted)
        # nobody will know: it is neither decided nor counted
        each[:, dark.ravel()], texture[dark.ravel()] = 0, np.nan
        area = _areas(texture, each)
        each = each.reshape(-1, *shape)
        probability[:, k], rain[k] = each[kept], each[_RAIN] >= decision(each[_RAIN])
        rate[k] = matched(each, area, texture.reshape(shape))
    if dark.any():
        probability[..., dark], rate[:, dark], rain[:, dark] = np.nan, np.nan, False
    return Outlook(probability, rate, rain, now.moving, tuple(keep))


def _arriving(
    reader: Reader, travelled: Field, lead: float, lives: Pace, pixel_km: float, fitted: Weights | None
) -> tuple[Field, Field]:
    """Of every pixel: probabilities of each rate, and how strong its rain is now, NaN where its air was not seen."""
    pixels = reader.shape[0] * reader.shape[1]
    each, texture = np.empty((len(THRESHOLDS), pixels), np.float32), np.empty(pixels, np.float32)
    for start in range(0, pixels, _PIXELS):
        part = slice(start, start + _PIXELS)
        there, beyond = reader(travelled, part)
        each[:, part] = exceedance(there, beyond * np.float32(pixel_km), lead, lives, fitted)
        texture[part] = np.where((beyond == 0) & (there[:, -1] > _SEEN_AROUND), there[:, 0], np.nan)
    return each, texture


def paths(moving: Field, ahead: Sequence[float]) -> Iterator[Field]:
    """Rows and columns that each pixel's air has travelled since now, (2, height, width), at each of `ahead` minutes.

    Followed on every fourth row and column, and linear in between.
    """
    shape = moving.shape[1:]
    coarse = moving[:, ::_COARSE, ::_COARSE] / np.float32(_COARSE) if min(shape) > 8 * _COARSE else moving
    factor = _COARSE if coarse is not moving else 1
    travelled, now = np.zeros_like(coarse), 0.0
    for lead in ahead:
        steps = max(int(np.ceil((lead - now) / _STEP - 1e-9)), 1)
        for _ in range(steps):
            travelled = _further(travelled, coarse * np.float32((lead - now) / steps))
        now = lead
        yield travelled if factor == 1 else finer(travelled * np.float32(factor), shape, factor)


def displacements(moving: Field, steps: int) -> Iterator[Field]:
    """Where each pixel's air has come from after 1, 2, ... steps, as rows and columns travelled: (2, height, width)."""
    travelled = np.zeros_like(moving)
    for _ in range(steps):
        travelled = _further(travelled, moving)
        yield travelled


def _further(travelled: Field, moving: Field) -> Field:
    """The midpoint rule: the motion half a step further back stands for the whole step."""
    here = np.stack([carried(part, travelled) for part in moving])
    return travelled + np.stack([carried(part, travelled + here / 2) for part in moving])


def _areas(texture: Field, probability: Field) -> NDArray[np.float64]:
    """How many pixels exceed each rate: as many as now where the air was seen, else as many as are expected."""
    seen = np.isfinite(texture)
    now = texture[seen]
    found = (now >= _STRENGTHS[:, None]).sum(1, dtype=np.float64) + probability[:, ~seen].sum(1, dtype=np.float64)
    heavy = now[now >= _STRENGTHS[-1]]
    return np.concatenate([found, (heavy >= strength(np.array(_HEAVIER))[:, None]).sum(1, dtype=np.float64)])


def matched(probability: Field, area: NDArray[np.float64], texture: Field) -> Field:
    """Rates that keep the rain's areas: (thresholds, height, width) to (height, width) in mm/h.

    Pixels are ranked by how much rain is likely, and as many exceed each rate, and some heavier ones, as `area` says.
    A mean would lose the strong rain, and one threshold of each probability would make too much or too little of it.
    The rank has a part of the image that was carried on (`texture`, a strength; NaN where the air was not seen): rain
    stays as patchy as it is.
    """
    likely = np.tensordot(_WORTH, probability, 1)  # about the strength that is expected
    likely += _TEXTURE * np.where(np.isfinite(texture), texture, likely)
    falling = np.sort(likely, axis=None)[::-1]
    # as much rain is likely at the last of the pixels that exceed a rate: from there to the next a logarithm's step
    places = np.clip(area.astype(np.int64), 0, falling.size - 1)
    knots = np.concatenate([falling[places], falling[:1]]).astype(np.float64)
    knots = np.maximum.accumulate(knots) + 1e-12 * np.arange(len(knots))
    logarithms = np.log([*THRESHOLDS, *_HEAVIER, 2 * _HEAVIER[-1]])
    rate: Field = np.exp(np.interp(likely, knots, logarithms)).astype(np.float32)
    rate[likely <= falling[places[0]]] = 0.0
    return rate


_STRENGTHS = strength(np.array(THRESHOLDS))
_WORTH = np.diff(np.log1p(np.array([0.0, *THRESHOLDS]) / 0.1)).astype(np.float32)


def extrapolate(
    rates: NDArray[np.floating[Any]], leads: int, *, step_minutes: float = 15.0, pixel_km: float = 2.0
) -> Field:
    """(leads, height, width): probability of at least 0.2 mm/h, one step after another."""
    minutes = np.arange(len(rates)) * step_minutes
    ahead = [step_minutes * (k + 1) for k in range(leads)]
    return np.nan_to_num(outlook(rates, minutes.tolist(), ahead, pixel_km=pixel_km).at_least(0.2))


def decision(probability: Field) -> float:
    """The threshold with the largest expected IoU if the probabilities are right.

    With pixels sorted by probability p, calling the first n rain gives sum p / (n + sum of the rest's p).
    """
    place = (probability * np.float32(_SHADES)).astype(np.int32).ravel()
    place = place[place > _SHADES // 100]  # below 1 % nothing is decided
    if not place.size:
        return 1.0
    count = np.bincount(place, minlength=_SHADES + 1)[::-1]
    caught = (count * (_SHADES + 0.5 - np.arange(_SHADES + 1))).cumsum() / _SHADES
    expected = caught / (count.cumsum() + caught[-1] - caught)
    return (_SHADES - int(expected.argmax())) / _SHADES
