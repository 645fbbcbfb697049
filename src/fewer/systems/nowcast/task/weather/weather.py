"""Paired sequences of satellite images and radar rain rates from Gaussian fields that move with the wind.

Two fields make the rain: a coarse one (wavelengths over 40 km, 12 km pixels, all of the satellite's view) that clouds
follow too, and a fine one (4 to 40 km, 2 km pixels, the radar's view) that the satellite cannot see. Small sizes keep
the pixels and cover less ground. On a CPU equal scenes give equal bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from fewer.core.errors import UserError
from fewer.core.seed import torch_seed
from fewer.systems.nowcast.task.weather.clouds import Air, images, surface
from fewer.systems.nowcast.task.weather.fields import OUTER_KM, Evolution, Grid, Law, variance_share
from fewer.systems.nowcast.task.weather.ground import SATELLITE_KM, radar_offset_km
from fewer.systems.nowcast.task.weather.regimes import Scene
from fewer.systems.nowcast.task.weather.wind import Wind, sample_periodic
from fewer.systems.nowcast.task.windows import FACTOR

__all__ = ["Frame", "Weather", "checked_size"]

RADAR_KM = SATELLITE_KM / FACTOR
WET = 0.2  # mm/h: where the competition's rain begins
_SPLIT_KM, _FINEST_KM = 40.0, 4.0
_DRIZZLE = -0.5  # of the rain field: below, radars detect nothing
_HEAVIEST = 120.0  # mm/h
_EASY = (64, 96, 128, 144, 160, 192, 216, 240, 256, 288, 320, 384, 432, 480, 512, 576, 640, 768, 1024)


class Frame(NamedTuple):
    """One moment of all scenes."""

    satellite: Tensor | None  # (scenes, bands, size, size): reflectances, K
    rate: Tensor | None  # (scenes, size, size), mm/h, 0 where nothing is detected


def checked_size(size: int) -> int:
    """The same, or the line that says why not."""
    if size % FACTOR or not 12 <= size <= 252:
        raise UserError(f"size {size}", "a multiple of 6 from 12 to 252 pixels", "252 is the competition's")
    return size


def _easy(least: float) -> int:
    """A number of pixels that transforms fast."""
    return next(pixels for pixels in _EASY if pixels >= least)


class Weather:
    """Scenes that evolve together; none depends on its company, but for rounding."""

    def __init__(self, scenes: Sequence[Scene], *, size: int, device: torch.device | str = "cpu") -> None:
        self.scenes, self.size, self.device = list(scenes), checked_size(size), torch.device(device)
        self.wind = Wind(self.scenes, self.device)
        # the coarse field must hold several of its largest structures, whatever the satellite sees of it
        self.coarse_grid = Grid(_easy(max(size + 30, 128)), SATELLITE_KM)
        self.fine_grid = Grid(_easy(1.5 * size), RADAR_KM)
        dry = [NormalDist().inv_cdf(1 - scene.wet) for scene in self.scenes]
        self.threshold = torch.tensor(dry, device=self.device)[:, None, None]

    def frames(self, count: int, *, seen: Sequence[int], measured: Sequence[int]) -> Iterator[Frame]:
        """`count` frames 15 minutes apart: satellite images for those in `seen`, radar for those in `measured`."""
        coarse = self._evolution("coarse", self.coarse_grid, (4000.0, _SPLIT_KM))
        others = [self._other(name, law) for name, law in _OTHERS.items()]
        fine = None
        wide = _nodes(self.size, SATELLITE_KM, 60.0, 0.0).to(self.device)
        near = _nodes(self.size, RADAR_KM, 20.0, radar_offset_km(self.size)).to(self.device)
        wide_origins, near_origins = (self._origins(nodes, count) for nodes in (wide, near))
        sensor = self._generators("sensor")
        for frame in range(count):
            if frame:
                for field in [coarse, *others] if seen and frame <= seen[-1] else [coarse]:
                    field.advance_()
                if fine is not None:
                    fine.advance_()
            satellite = rate = None
            if frame in seen:
                places = self._spread(wide_origins[frame])
                air = self._air(coarse, others, places)
                below = surface(self.scenes, self.size, minutes=15 * frame, device=self.device)
                satellite = images(air, below, sensor)
            if frame in measured:
                if fine is None:  # stationary, so it may begin where it is first looked at
                    fine = self._evolution("fine", self.fine_grid, (_SPLIT_KM, _FINEST_KM))
                rate = self._rate(coarse, fine, self._spread(near_origins[frame]))
            yield Frame(satellite, rate)

    def _generators(self, name: str) -> list[torch.Generator]:
        seeds = [torch_seed(scene.seed, name) for scene in self.scenes]
        return [torch.Generator(self.device).manual_seed(seed) for seed in seeds]

    def _evolution(self, name: str, grid: Grid, band_km: tuple[float, float]) -> Evolution:
        """A part of the rain field, with its share of the variance."""
        laws = []
        for scene in self.scenes:
            whole = variance_share(scene.slope, 1e6, _FINEST_KM)
            longest = 1e6 if band_km[0] > OUTER_KM else band_km[0]
            share = variance_share(scene.slope, longest, band_km[1]) / whole
            laws.append(Law(scene.slope, scene.tau_hours, scene.exponent, share))
        return Evolution(grid, laws, band_km=band_km, generators=self._generators(name))

    def _other(self, name: str, law: Law) -> Evolution:
        laws = [law] * len(self.scenes)
        return Evolution(self.coarse_grid, laws, band_km=(4000.0, 30.0), generators=self._generators(name))

    def _origins(self, nodes: Tensor, count: int) -> list[Tensor]:
        """Per frame (scenes, rows, columns, 2): where in the fields each node's air lies, in km."""
        rows = nodes.shape[0]
        flat = nodes.reshape(1, -1, 2).expand(len(self.scenes), -1, 2)
        return [each.view(-1, rows, rows, 2) for each in self.wind.origins(flat, frames=count)]

    def _spread(self, origins: Tensor) -> Tensor:
        """From nodes to pixels: (scenes, size, size, 2)."""
        shape = (self.size, self.size)
        pixels = interpolate(origins.permute(0, 3, 1, 2), shape, mode="bilinear", align_corners=True)
        return pixels.permute(0, 2, 3, 1)

    def _air(self, coarse: Evolution, others: Sequence[Evolution], places: Tensor) -> Air:
        blur = torch.exp(-0.5 * (self.coarse_grid.wavenumbers(self.device) * _ANVIL_KM) ** 2)
        stack = torch.stack([coarse.values(blur), *(field.values() for field in others)], dim=1)
        rain, *rest = sample_periodic(stack, places, SATELLITE_KM).unbind(1)
        return Air(rain - self.threshold, *rest)

    def _rate(self, coarse: Evolution, fine: Evolution, places: Tensor) -> Tensor:
        """r = 0.2 exp(2.8 e - 0.35 e^2) mm/h of the excess e over the scene's threshold."""
        large = sample_periodic(coarse.values()[:, None], places, SATELLITE_KM)
        small = sample_periodic(fine.values()[:, None], places, RADAR_KM)
        excess = (large + small)[:, 0] - self.threshold
        rate = WET * torch.exp(_GROWTH * excess - _BEND * excess**2)
        return torch.where(excess > _DRIZZLE, rate, 0.0).clamp(max=_HEAVIEST)


_GROWTH, _BEND = 2.8, 0.35
_ANVIL_KM = 10.0
_OTHERS = {
    "cirrus": Law(slope=3.0, tau_hours=0.5, exponent=0.7),
    "humidity": Law(slope=3.6, tau_hours=1.0, exponent=0.7, outer_km=1200.0),
    "stratus": Law(slope=3.0, tau_hours=0.8, exponent=0.7),
}


def _nodes(size: int, pixel_km: float, apart_km: float, offset_km: float) -> Tensor:
    """(n, n, 2) places in km, x first, from the first pixel's centre to the last's, about `apart_km` apart."""
    half = (size - 1) / 2 * pixel_km
    along = torch.linspace(-half, half, max(3, round(2 * half / apart_km) + 1)) + offset_km
    down, across = torch.meshgrid(along, along, indexing="ij")
    return torch.stack([across, down], dim=-1)
