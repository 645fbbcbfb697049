"""How long rain of each size lives in this event, from how alike its last images are once their motion is taken out.

As the cascades of spectral prognosis do, an image of strengths is a sum of bands, each the difference of two Gaussian
means; small bands are forgotten first. What is left of the image at a lead time is the sum of its bands, each times
the share of it that is remembered by then. Correlations are sums over spectra: no band is ever drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.systems.nowcast.task.baselines.motion import Field, carried

__all__ = ["SCALES_KM", "Pace", "pace"]

SCALES_KM = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # standard deviations of the Gaussian means; and the pixel itself
_LEAST, _MOST = 2.0, 600.0  # minutes that a band is remembered
_USUAL = np.array([16.0, 28.0, 58.0, 140.0, 400.0, 600.0], np.float32)  # where there is nothing to compare
_NOTHING = 1e-6  # of power in a band
_SHELLS = 96
_FEW = 64  # pixels seen in both images, below which nothing is compared


@dataclass(frozen=True)
class Pace:
    """Minutes after which each band's correlation has fallen to 1/e, small bands first."""

    minutes: Field  # (len(SCALES_KM),)

    def remembered(self, ahead: float) -> Field:
        """Shares of the bands that are left by then."""
        left: Field = np.exp(-ahead / self.minutes).astype(np.float32)
        return left

    def weights(self, ahead: float) -> Field:
        """Of the pixel and its Gaussian means: their sum is what is left of the image; the widest mean stays."""
        left = np.concatenate([self.remembered(ahead), [1.0]])
        weights: Field = np.diff(left, prepend=0.0).astype(np.float32)
        return weights


def pace(images: Field, known: NDArray[np.bool_], moving: Field, since: Sequence[float], pixel_km: float) -> Pace:
    """From strengths (time, height, width), taken `since` minutes ago each (the last 0), and motion in a minute.

    Of every pair of images the correlation is compared with exp(-minutes between / what is sought); the logarithms'
    least squares decide.
    """
    whole = known[-1].astype(np.float32)
    carried_here = [images[-1]]
    for image, seen, minutes in zip(images[-2::-1], known[-2::-1], since[-2::-1]):
        travelled = moving * np.float32(minutes)
        whole *= carried(seen.astype(np.float32), travelled, 0.0)
        carried_here.append(carried(image, travelled))
    if whole.sum() < _FEW:
        return Pace(_USUAL)
    ago = list(since[::-1])
    spectra = _Spectra(whole.shape, pixel_km)
    parts = [spectra.transform(part, whole) for part in carried_here]
    own = [spectra.bands(part, part) for part in parts]
    lost, squares = np.zeros(len(SCALES_KM)), 0.0
    for i, j in itertools.combinations(range(len(parts)), 2):
        apart, power = ago[j] - ago[i], np.sqrt(own[i] * own[j])
        alike = spectra.bands(parts[i], parts[j]) / np.maximum(power, _NOTHING)
        alike = np.where(power > _NOTHING, np.clip(alike, 0.01, 0.995), np.exp(-apart / _USUAL))
        lost -= apart * np.log(alike)
        squares += apart**2
    return Pace(np.clip(squares / lost, _LEAST, _MOST).astype(np.float32))


class _Spectra:
    """Powers of the bands, by shells of wave number."""

    def __init__(self, shape: tuple[int, ...], pixel_km: float) -> None:
        from scipy.fft import next_fast_len

        self._shape = tuple(next_fast_len(length, real=True) for length in shape)
        number = np.hypot(np.fft.fftfreq(self._shape[0])[:, None], np.fft.rfftfreq(self._shape[1])) / pixel_km
        edges = np.linspace(0, number.max() ** 0.5, _SHELLS + 1) ** 2  # narrow shells at long waves
        self._shell = np.clip(np.searchsorted(edges, number, side="right") - 1, 0, _SHELLS - 1).ravel()
        middle = (edges[1:] + edges[:-1]) / 2
        means = [np.ones(_SHELLS), *(np.exp(-2 * np.pi**2 * scale**2 * middle**2) for scale in SCALES_KM)]
        self._windows = np.diff(means, axis=0) ** 2  # (bands, shells)

    def transform(self, field: Field, seen: Field) -> NDArray[np.complexfloating[Any, Any]]:
        from scipy.fft import rfft2

        mean = np.float32((field * seen).sum() / seen.sum())
        found: NDArray[np.complexfloating[Any, Any]] = rfft2((field - mean) * seen, self._shape)
        return found

    def bands(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        product = first.real * second.real + first.imag * second.imag
        product[:, 1:] *= 2  # waves whose mirror images the transform leaves out
        found: NDArray[np.float64] = self._windows @ np.bincount(self._shell, product.ravel(), _SHELLS)
        return found
