"""Correlated shadow fading: maps by circulant embedding (exact) or row by row, fields evaluated on demand, a self-test.

The wanted correlation of two places at distance d is exp(-d / decorrelation). Shadowing of access point l is
sqrt(rho) common + sqrt(1 - rho) own_l, so two access points correlate by rho everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.fft import fft2, next_fast_len

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Floats, Integers

__all__ = ["MapShadows", "Shadows", "SpectralShadows", "correlation", "fft_maps", "row_maps"]

# (dx, dy) of the pixels that a new pixel looks at, all of them made before it (Claussen 2005)
_NEAR = ((-1, -1), (0, -1), (1, -1), (-1, 0))
_NEXT = ((-1, -2), (1, -2), (-2, -1), (2, -1))
_FAR = ((0, -2), (-2, 0), (-2, -2), (2, -2))
_NEIGHBOURS = {4: _NEAR, 8: _NEAR + _NEXT, 12: _NEAR + _NEXT + _FAR}


class Shadows(Protocol):
    """Shadow fading of a fixed environment: the same place always has the same values."""

    def at(self, phones: Floats, links: Integers | None = None) -> Floats:
        """(phones, L) in dB, or (phones, links) of the access points in `links` (phones, links)."""


def correlation(distance_m: Floats, decorrelation_m: float) -> Floats:
    """exp(-d / decorrelation); white for a decorrelation distance of 0."""
    if decorrelation_m == 0:
        return np.asarray(distance_m == 0, dtype=np.float64)
    return np.asarray(np.exp(-distance_m / decorrelation_m))


def fft_maps(
    random: np.random.Generator, count: int, pixels: int, *, decorrelation_px: float, wrap: bool = False
) -> Floats:
    """(count, pixels, pixels) with unit variance, by circulant embedding; negative eigenvalues are clipped."""
    reach = pixels if wrap else int(next_fast_len(pixels + max(pixels, math.ceil(6 * decorrelation_px))))
    steps = np.minimum(np.arange(reach), reach - np.arange(reach))
    covariance = correlation(np.hypot(*np.meshgrid(steps, steps)), decorrelation_px)
    amplitude = np.sqrt(np.clip(fft2(covariance).real, 0.0, None) / reach**2).astype(np.float32)
    maps = np.empty((count, pixels, pixels), dtype=np.float32)
    for first in range(0, count, 2):
        # real and imaginary part of one transform are two independent maps
        white = random.standard_normal((2, reach, reach), dtype=np.float32)
        field = fft2(amplitude * (white[0] + 1j * white[1]))[:pixels, :pixels]
        maps[first] = field.real
        if first + 1 < count:
            maps[first + 1] = field.imag
    return maps


def row_maps(
    random: np.random.Generator, count: int, pixels: int, *, decorrelation_px: float, neighbours: int
) -> Floats:
    """(count, pixels, pixels) by Claussen's row method, each rescaled to unit deviation.

    Faster to understand than to trust: correlation falls off too fast and differently along rows and columns.
    """
    if neighbours not in _NEIGHBOURS:
        raise UserError(f"{neighbours} neighbours", "4, 8 or 12")
    maps = random.standard_normal((pixels, pixels, count), dtype=np.float32)
    rules: dict[tuple[tuple[int, int], ...], tuple[Floats, float]] = {}
    for y in range(pixels):
        for x in range(pixels):
            # missing neighbours are dropped; taking them as 0 would bias the first rows and columns
            known = tuple(o for o in _NEIGHBOURS[neighbours] if 0 <= x + o[0] < pixels and y + o[1] >= 0)
            if not known:
                continue
            if known not in rules:
                rules[known] = _conditional(np.array(known, dtype=np.float64), decorrelation_px)
            weights, deviation = rules[known]
            near = np.stack([maps[y + dy, x + dx] for dx, dy in known])
            maps[y, x] = weights @ near + deviation * maps[y, x]
    maps = np.moveaxis(maps, -1, 0)
    spread = maps.std(axis=(1, 2), keepdims=True)
    return maps / np.where(spread > 0, spread, 1.0)  # type: ignore[no-any-return]


def _conditional(offsets: Floats, decorrelation_px: float) -> tuple[Floats, float]:
    """Weights on the neighbours and the deviation of what they leave open."""
    between = correlation(np.linalg.norm(offsets[:, None] - offsets[None], axis=-1), decorrelation_px)
    toward = correlation(np.linalg.norm(offsets, axis=-1), decorrelation_px)
    weights = np.linalg.solve(between, toward)
    return weights.astype(np.float32), math.sqrt(max(0.0, float(1.0 - toward @ weights)))


@dataclass(frozen=True)
class MapShadows:
    """Stored maps, looked up at the nearest pixel. Memory grows with access points x area: for small networks."""

    maps: Floats  # (L, rows, columns) in dB; rows go with y
    pixel_m: float
    wrap: bool = False

    def at(self, phones: Floats, links: Integers | None = None) -> Floats:
        """See `Shadows.at`."""
        _, rows, columns = self.maps.shape
        column, row = np.floor(phones / self.pixel_m).astype(np.int64).T
        if self.wrap:
            row, column = row % rows, column % columns
        row, column = row.clip(0, rows - 1), column.clip(0, columns - 1)
        if links is None:
            return np.asarray(self.maps[:, row, column].T)
        return np.asarray(self.maps[links, row[:, None], column[:, None]])


@dataclass(frozen=True)
class SpectralShadows:
    """A Gaussian field as a sum of waves, evaluated where it is asked: memory grows with access points only.

    The frequencies follow the spectrum of exp(-d / D) in the plane, whose radius r has P(r D > q) = 1 / sqrt(1 + q^2);
    drawn in strata they give the correlation to about one percent. Waves are shared, their amplitudes are not.
    """

    frequencies: Floats  # (waves, 2) in radians per metre
    amplitudes: Floats  # (L, 2 waves) in dB, of cosines and sines

    @classmethod
    def draw(
        cls, random: np.random.Generator, count: int, *, decorrelation_m: float, waves: int = 512
    ) -> SpectralShadows:
        """`count` independent fields of unit variance."""
        share = (np.arange(waves) + random.uniform(0.0, 1.0, waves)) / waves
        radius = np.sqrt(np.maximum(share**-2.0 - 1.0, 0.0)) / max(decorrelation_m, 1e-3)
        angle = math.pi * ((np.arange(waves) * 0.618033988749895) % 1.0)  # half a turn: cosines are even
        frequencies = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        amplitudes = random.standard_normal((count, 2 * waves), dtype=np.float32) / np.float32(math.sqrt(waves))
        return cls(frequencies, amplitudes)

    def at(self, phones: Floats, links: Integers | None = None) -> Floats:
        """See `Shadows.at`."""
        phase = phones @ self.frequencies.T
        waves = np.concatenate([np.cos(phase), np.sin(phase)], axis=1).astype(np.float32)  # (phones, 2 waves)
        if links is None:
            return waves @ self.amplitudes.T  # type: ignore[no-any-return]
        return np.stack([np.einsum("pw,pw->p", waves, self.amplitudes[link]) for link in links.T], axis=1)
