"""Correlated Rayleigh channels, their MMSE estimates from shared pilots, and draws of those estimates.

Arrays are ordered access point first, (L, K, N, N): whoever combines signals works inside one access point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.spectral.radio import Complexes, Floats, Integers

__all__ = ["Channels", "arrival_angles", "channels", "draw", "local_scattering"]

_DRAWN_AT_ONCE = 4_000_000  # complex numbers a block of realisations may hold


@dataclass(frozen=True)
class Channels:
    """Second-order statistics of all channels and estimates, in units of the noise; (L, K, N, N) each."""

    covariance: Complexes  # R of the true channel
    estimated: Complexes  # B of the MMSE estimate
    error: Complexes  # C = R - B of what the estimate misses, independent of it
    shaping: Complexes  # F: the estimate is F times white noise that phones on the same pilot share; B = F F^H
    filter: Complexes  # R Psi^-1 sqrt(eta tau): the estimate is this times the received pilot
    pilots: Integers  # (K,)
    pilot_energy: float  # eta tau, power times pilot symbols


def arrival_angles(phones: ArrayLike, access_points: ArrayLike) -> Floats:
    """Azimuths (K, L) in radians, seen from access points (L, 2) with their broadside along the x axis."""
    step = np.asarray(phones, dtype=np.float64)[:, None] - np.asarray(access_points, dtype=np.float64)
    return np.asarray(np.arctan2(step[..., 1], step[..., 0]))


def local_scattering(
    azimuth: ArrayLike,
    antennas: int,
    *,
    spread_degrees: float = 15.0,
    elevation: ArrayLike | None = None,
    elevation_spread_degrees: float = 15.0,
    spacing_wavelengths: float = 0.5,
) -> Complexes:
    """Correlation matrices (K, L, N, N) of a uniform linear array hearing Gaussian-spread scatterers.

    R[n, m] = E exp(2 pi i spacing (n - m) sin(azimuth + a) cos(elevation + e)), unit diagonal. A quadrature with
    positive weights is a mixture of plane waves, so every matrix is positive semidefinite.
    """
    around = np.asarray(azimuth, dtype=np.float64)
    upward = np.zeros_like(around) if elevation is None else np.asarray(elevation, dtype=np.float64)
    if not (np.isfinite(around).all() and np.isfinite(upward).all() and around.shape == upward.shape):
        raise UserError(f"angles of shapes {around.shape} and {upward.shape}", "finite radians of one shape")
    if antennas < 1 or not (spread_degrees >= 0 and elevation_spread_degrees >= 0 and spacing_wavelengths > 0):
        raise UserError(
            f"{antennas} antennas at {spacing_wavelengths} wavelengths, spread {spread_degrees} degrees",
            "at least 1 antenna, a positive spacing and spreads of 0 or more",
        )
    widest = 2 * math.pi * spacing_wavelengths * (antennas - 1)  # radians across the array
    turns = _gaussian_nodes(math.radians(spread_degrees), widest)
    lags = np.zeros((*around.shape, antennas), dtype=np.complex128)
    # without an elevation the array is seen edge-on: one node, no vertical spread
    tilts = _gaussian_nodes(math.radians(elevation_spread_degrees) if elevation is not None else 0.0, widest)
    for tilt, tilt_weight in tilts:
        height = np.cos(upward + tilt)
        for turn, turn_weight in turns:
            phase = 2j * math.pi * spacing_wavelengths * np.sin(around + turn) * height
            lags += tilt_weight * turn_weight * np.exp(phase[..., None] * np.arange(antennas))
    step = np.arange(antennas)[:, None] - np.arange(antennas)
    return np.asarray(np.where(step >= 0, lags[..., np.abs(step)], lags[..., np.abs(step)].conj()))


def _gaussian_nodes(spread: float, widest: float) -> list[tuple[float, float]]:
    """Nodes and weights of a normal angle for integrands exp(i widest sin(angle)), good to about 1e-10.

    The trapezoid rule is spectrally accurate here: 7 deviations cut off 1e-12 of the mass, and the step keeps 7
    deviations of the Gaussian's spectrum between the integrand's highest harmonic and its first alias.
    """
    if spread == 0:
        return [(0.0, 1.0)]
    highest = 1.2 * widest + 16  # Bessel functions J_q(widest) vanish beyond
    nodes = np.linspace(-7.0, 7.0, 2 * math.ceil(7 * (highest * spread + 7) / (2 * math.pi)) + 1)
    weights = np.exp(-0.5 * nodes**2)
    return list(zip((nodes * spread).tolist(), (weights / weights.sum()).tolist()))


def channels(
    gain: Floats, pilots: Integers, *, pilot_energy: float, antennas: int, correlation: ArrayLike | None = None
) -> Channels:
    """Statistics for gains (K, L) over noise; `correlation` (K, L, N, N) has unit mean diagonal, None: identity."""
    shape = (*gain.shape, antennas, antennas)
    if correlation is None:
        spatial = np.broadcast_to(np.eye(antennas, dtype=np.complex128), shape)
    else:
        spatial = np.asarray(correlation, dtype=np.complex128)
        if spatial.shape != shape or not np.isfinite(spatial).all():
            raise UserError(f"a correlation of shape {spatial.shape}", f"finite numbers of shape {shape}")
        if not np.allclose(spatial, spatial.conj().swapaxes(-1, -2), atol=1e-6):
            raise UserError("a correlation that is not Hermitian", "R[n, m] = conj(R[m, n])")
    covariance = (gain[..., None, None] * spatial).transpose(1, 0, 2, 3)
    members = (pilots == np.arange(pilots.max() + 1)[:, None]).astype(np.float64)  # (T, K)
    received = pilot_energy * np.einsum("tk,lknm->ltnm", members, covariance) + np.eye(antennas)  # Psi
    factor = np.linalg.cholesky(received)
    # R Psi^-1 = (Psi^-1 R)^H as both are Hermitian
    solved = np.linalg.solve(received[:, pilots], covariance).conj().swapaxes(-1, -2)
    filtering = math.sqrt(pilot_energy) * solved
    shaping = filtering @ factor[:, pilots]
    estimated = shaping @ shaping.conj().swapaxes(-1, -2)
    return Channels(covariance, estimated, covariance - estimated, shaping, filtering, pilots, pilot_energy)


def white_noise(generator: np.random.Generator, shape: tuple[int, ...]) -> Complexes:
    """Complex normals of unit variance; realisations lead, so blocks of any size continue one stream."""
    return generator.standard_normal((*shape, 2)).view(np.complex128)[..., 0] * math.sqrt(0.5)


def draw(statistics: Channels, realisations: int, *, seed: int = 0, block: int = 0) -> Iterator[Complexes]:
    """Blocks of estimates (R, L, K, N); the same seed gives the same numbers, up to rounding, for blocks of any size.

    Only the pilots' white noise is drawn, as estimates on one pilot are functions of one received signal. The true
    channel is the estimate plus an independent error of known covariance, over which the moments are exact.
    """
    if realisations < 1:
        raise UserError(f"{realisations} realisations", "at least 1")
    points, phones, antennas, _ = statistics.shaping.shape
    count = int(statistics.pilots.max()) + 1
    size = block or max(1, _DRAWN_AT_ONCE // (points * phones * antennas))
    generator = np.random.default_rng(seed)
    for begin in range(0, realisations, size):
        here = min(size, realisations - begin)
        white = white_noise(generator, (here, points, count, antennas)).transpose(1, 2, 3, 0)  # (L, T, N, R)
        yield np.ascontiguousarray((statistics.shaping @ white[:, statistics.pilots]).transpose(3, 0, 1, 2))
