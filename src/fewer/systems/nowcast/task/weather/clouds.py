"""Eleven bands as a geostationary imager sees a field of rain: clouds over ground under the sun.

A simple radiative picture, layer over layer: ground, rain cloud (emissivity and top grow with the rain field), cirrus
(a field of its own, which hides rain), water vapour. The last lines fit each band's mean and deviation to the
competition's: one affine map per infrared band, one factor per reflectance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import torch
from torch import Tensor

from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.weather import ground
from fewer.systems.nowcast.task.weather.regimes import Scene

__all__ = ["Air", "Surface", "images", "surface"]

_LAPSE = 6.3  # K per km
_CIRRUS_KM = 9.5
_TROPOPAUSE_K = 210.0
# per band: factor and offset of the raw picture; reflectances have no offset
_FIT = {
    "IR_016": (1.19, 0.0), "IR_039": (0.9097, 27.7), "IR_087": (1.0138, -1.8), "IR_097": (0.9967, -5.1),
    "IR_108": (1.0631, -15.4), "IR_120": (1.0470, -11.0), "IR_134": (1.0818, -27.4), "VIS006": (1.185, 0.0),
    "VIS008": (1.23, 0.0), "WV_062": (1.3945, -94.8), "WV_073": (1.2705, -69.3),
}  # fmt: skip


class Air(NamedTuple):
    """What moves, on the satellite's grid; each (scenes, size, size)."""

    rain: Tensor  # the coarse rain field, blurred as anvils are, less the threshold of rain
    cirrus: Tensor  # standard normal
    humidity: Tensor  # standard normal
    stratus: Tensor  # standard normal: low cloud without rain


class Surface(NamedTuple):
    """What does not, for one moment; each (scenes, size, size) but the last."""

    temperature: Tensor  # K
    land: Tensor
    sun: Tensor  # cosine of its zenith angle
    top_km: Tensor  # (scenes, 1, 1): the regime's growth of cloud tops


def surface(scenes: Sequence[Scene], size: int, *, minutes: int, device: torch.device) -> Surface:
    """Ground and sun, so many minutes after each scene's start."""
    times = [scene.start + timedelta(minutes=minutes) for scene in scenes]
    land = [ground.land(scene.region, size) for scene in scenes]
    suns = [ground.sun(scene.region, size, when) for scene, when in zip(scenes, times, strict=True)]
    warmth = [
        _temperature(scene.region, size, when, part) for scene, when, part in zip(scenes, times, land, strict=True)
    ]
    top = torch.tensor([scene.top_km for scene in scenes], device=device)[:, None, None]
    warmth_all, land_all, sun_all = (torch.stack(part).to(device) for part in (warmth, land, suns))
    return Surface(warmth_all, land_all, sun_all, top)


def _temperature(region: str, size: int, when: datetime, land: Tensor) -> Tensor:
    """Skin temperature in K: latitude, season, hour; the sea is slow."""
    latitude, longitude = ground.latitudes(region, size)
    season = -math.cos(2 * math.pi * (when.timetuple().tm_yday - 28) / 365.25)
    local = when.hour + when.minute / 60 + longitude / 15
    day = torch.cos(2 * math.pi * (local - 14) / 24)
    return 285.5 - 0.55 * (latitude - 48) + season * (4 + 7 * land) + land * day * (4 + 3 * season)


def images(air: Air, below: Surface, generators: Sequence[torch.Generator]) -> Tensor:
    """(scenes, bands, size, size): reflectances and brightness temperatures in K."""
    opaque = torch.sigmoid((air.rain + 0.75) * 4.0)
    low = 0.8 * torch.sigmoid((air.stratus - 0.55) * 4.0)
    ice = 0.75 * torch.sigmoid((air.cirrus - 1.0) * 3.0)
    top = (2.5 + below.top_km * (air.rain + 0.9)).clamp(0.8, 12.5)
    high = torch.sigmoid((top - 5.5) * 1.2) * opaque
    heat = below.temperature * (1 - low) + (below.temperature - _LAPSE * 1.4) * low
    cloud_top = (below.temperature - _LAPSE * top).clamp(min=_TROPOPAUSE_K)
    heat = heat * (1 - opaque) + cloud_top * opaque
    cold = (below.temperature - _LAPSE * _CIRRUS_KM).clamp(min=_TROPOPAUSE_K)
    window = heat * (1 - ice) + cold * ice
    vapour = torch.tanh(air.humidity * 0.8)
    bands = {
        "IR_108": window,
        "IR_120": window - 1.2 - 0.8 * vapour - 1.5 * ice,
        "IR_087": window - 1.5 - 1.2 * (1 - opaque) * below.land,
        "IR_097": 0.62 * window + 0.38 * 225.0 - 2.0 * vapour,
        "IR_134": 0.62 * window + 0.38 * 238.0 - 1.5 * vapour,
        "WV_062": _vapour_band(235.5 - 6.5 * vapour, cloud_top, cold, (high, 0.5 * ice)),
        "WV_073": _vapour_band(254.0 - 8.5 * vapour, cloud_top, cold, (high, 0.8 * ice)),
    }
    bands |= _sunlit(window, (opaque, low, ice, high), below)
    raw = torch.stack([bands[band.name] * _FIT[band.name][0] + _FIT[band.name][1] for band in BANDS], dim=1)
    return _sensed(raw, generators)


def _vapour_band(clear: Tensor, top: Tensor, cold: Tensor, share: tuple[Tensor, Tensor]) -> Tensor:
    """Only cloud above the moist layer is seen, and it cannot look warmer than the layer."""
    seen = clear * (1 - share[0]) + torch.minimum(top, clear) * share[0]
    return seen * (1 - share[1]) + torch.minimum(cold, seen) * share[1]


def _sunlit(window: Tensor, layers: tuple[Tensor, Tensor, Tensor, Tensor], below: Surface) -> dict[str, Tensor]:
    """The reflectances, and the band that sees both the sun and the warmth."""
    opaque, low, ice, high = layers
    cloud = 1 - (1 - 0.85 * opaque) * (1 - 0.7 * low) * (1 - 0.25 * ice)  # how much of the ground is hidden

    def seen(ground_sea: float, ground_land: float, albedo: Tensor | float) -> Tensor:
        bare = ground_sea + (ground_land - ground_sea) * below.land
        return below.sun * (bare * (1 - cloud) + albedo * cloud)

    frozen = torch.maximum(high, ice)
    near = seen(0.02, 0.22, 0.55 - 0.30 * frozen)
    warm = window + 0.7 + 22.0 * seen(0.02, 0.10, 0.30 - 0.25 * frozen)
    return {"IR_016": near, "VIS006": seen(0.04, 0.09, 0.62), "VIS008": seen(0.03, 0.24, 0.64), "IR_039": warm}


def _sensed(raw: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
    """With the sensor's noise, inside the sensor's range."""
    shape = raw.shape[1:]
    noise = torch.stack([torch.randn(shape, generator=each, device=raw.device) for each in generators])
    rough = torch.tensor([0.004 if band.reflectance else 0.25 for band in BANDS], device=raw.device)[:, None, None]
    lit = torch.tensor([1.0 if band.reflectance else 0.0 for band in BANDS], device=raw.device)[:, None, None]
    noisy = raw + noise * rough * torch.where((lit > 0) & (raw < 1e-4), 0.1, 1.0)  # dark at night, almost
    highest = torch.tensor([band.highest for band in BANDS], device=raw.device)[:, None, None]
    return torch.minimum(noisy.clamp(min=0), highest)
