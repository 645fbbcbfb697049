"""Gaussian fields on a periodic grid that live and die: each wavenumber forgets at its own rate.

The spectral density is S(k) ~ (k^2 + k0^2)^(-slope/2) with k0 = 2 pi / 600 km, and the coefficient of wavenumber k
follows X(t + dt) = r X(t) + sqrt(1 - r^2) noise with r = exp(-dt / tau), tau = tau0 (L / 10 km)^exponent, L = 2 pi / k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Evolution", "Grid", "Law", "variance_share"]

STEP_HOURS = 0.25
OUTER_KM = 600.0  # beyond it there is no more variance to gain
LONGEST_KM = 400.0  # structures larger than this live no longer


@dataclass(frozen=True)
class Grid:
    """A square of `pixels` x `pixels`, its edges glued together."""

    pixels: int
    pixel_km: float

    def wavenumbers(self, device: torch.device) -> Tensor:
        """(pixels, pixels // 2 + 1) in radians per km."""
        down = torch.fft.fftfreq(self.pixels, self.pixel_km, device=device)
        across = torch.fft.rfftfreq(self.pixels, self.pixel_km, device=device)
        return 2 * math.pi * torch.hypot(down[:, None], across[None, :])


@dataclass(frozen=True)
class Law:
    """How one scene's field looks and ages."""

    slope: float
    tau_hours: float
    exponent: float
    variance: float = 1.0
    outer_km: float = OUTER_KM


def variance_share(slope: float, longest_km: float, shortest_km: float) -> float:
    """The integral of k S(k) over these wavelengths, up to a factor common to all; slope other than 2."""

    def primitive(wavelength_km: float) -> float:
        square = (2 * math.pi / wavelength_km) ** 2 + (2 * math.pi / OUTER_KM) ** 2
        return float(square ** (1 - slope / 2) / (2 - slope))

    return primitive(shortest_km) - primitive(longest_km)


class Evolution:
    """One field per law, a frame after the other; each has its own generator, so that none depends on its company."""

    def __init__(
        self, grid: Grid, laws: Sequence[Law], *, band_km: tuple[float, float], generators: Sequence[torch.Generator]
    ) -> None:
        """`band_km`: the longest and shortest wavelength that the field holds."""
        self.grid, self.generators = grid, list(generators)
        device = self.generators[0].device
        k = grid.wavenumbers(device)
        inside = (k >= 2 * math.pi / band_km[0]) & (k < 2 * math.pi / band_km[1]) & (k > 0)
        length_km = (2 * math.pi / k.clamp(min=1e-9)).clamp(max=LONGEST_KM)
        amplitudes, keeps = [], []
        for law in laws:
            density = (k**2 + (2 * math.pi / law.outer_km) ** 2) ** (-law.slope / 2) * inside
            amplitudes.append(_amplitude(density, grid.pixels, law.variance))
            tau = law.tau_hours * (length_km / 10) ** law.exponent
            keeps.append(torch.exp(-STEP_HOURS / tau))
        self._amplitude, self._keep = torch.stack(amplitudes), torch.stack(keeps)
        self._renew = (1 - self._keep**2).sqrt() * self._amplitude
        self._reversed = (-torch.arange(grid.pixels, device=device)) % grid.pixels
        self.state = self._amplitude * self._noise()  # stationary from the first frame on

    def advance_(self) -> None:
        """A quarter of an hour later."""
        self.state = self._keep * self.state + self._renew * self._noise()

    def values(self, factor: Tensor | None = None) -> Tensor:
        """(laws, pixels, pixels), each wavenumber times a factor of it: a blur."""
        spectrum = self.state if factor is None else self.state * factor
        found: Tensor = torch.fft.irfft2(spectrum, s=(self.grid.pixels, self.grid.pixels))
        return found

    def _noise(self) -> Tensor:
        """(laws, pixels, pixels // 2 + 1), complex, mean square 2; the edge columns of a real field are Hermitian."""
        shape = (self.grid.pixels, self.grid.pixels // 2 + 1, 2)
        parts = [torch.randn(shape, generator=each, device=each.device) for each in self.generators]
        noise = torch.view_as_complex(torch.stack(parts))
        for column in (0, self.grid.pixels // 2):
            edge = noise[:, :, column]
            noise[:, :, column] = (edge + edge[:, self._reversed].conj()) / math.sqrt(2)
        return noise


def _amplitude(density: Tensor, pixels: int, variance: float) -> Tensor:
    """So that the field of 2-mean-square noise times this has the wanted variance (Parseval, half of the spectrum)."""
    twice = torch.full_like(density, 2.0)
    twice[:, 0] = twice[:, -1] = 1.0
    total = (twice * density).sum(dtype=torch.float64)
    return (density * (variance * pixels**4 / (2 * total)).to(density)).sqrt()
