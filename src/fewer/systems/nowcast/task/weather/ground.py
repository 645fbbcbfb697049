"""What does not move: land and sea, the sun above them, and where radars look."""

from __future__ import annotations

import functools
import math
import random
from datetime import datetime

import torch
from torch import Tensor

from fewer.core.seed import torch_seed
from fewer.systems.nowcast.task.weather.fields import Evolution, Grid, Law
from fewer.systems.nowcast.task.weather.regimes import REGIONS
from fewer.systems.nowcast.task.windows import FACTOR

__all__ = ["RADARS", "SATELLITE_KM", "covered", "land", "latitudes", "nearest_radar", "radar_offset_km", "sun"]

SATELLITE_KM = 12.0
RADARS = 9  # around the central square
_KM_PER_DEGREE = 111.2
_MAP = 288  # pixels of the map that any size is cut from


@functools.cache
def land(region: str, size: int) -> Tensor:
    """(size, size), 1 on land and 0 at sea, with coasts in between: the same map whatever the size."""
    generator = torch.Generator().manual_seed(torch_seed(0, f"land/{region}"))
    law = Law(slope=3.4, tau_hours=1.0, exponent=0.0, outer_km=1500.0)
    grid = Grid(_MAP, SATELLITE_KM)
    height = Evolution(grid, [law], band_km=(4000.0, 30.0), generators=[generator]).values()[0]
    shore = torch.quantile(height.flatten(), 1 - REGIONS[region].land)
    first = (_MAP - size) // 2
    return torch.sigmoid((height - shore) / 0.05)[first : first + size, first : first + size].contiguous()


def latitudes(region: str, size: int) -> tuple[Tensor, Tensor]:
    """(size, 1) latitudes, north first, and (1, size) longitudes of the satellite's pixels, in degrees."""
    place = REGIONS[region]
    away_km = (torch.arange(size) - (size - 1) / 2) * SATELLITE_KM
    latitude = place.latitude - away_km / _KM_PER_DEGREE
    longitude = place.longitude + away_km / (_KM_PER_DEGREE * math.cos(math.radians(place.latitude)))
    return latitude[:, None], longitude[None, :]


def sun(region: str, size: int, when: datetime) -> Tensor:
    """(size, size) cosine of the sun's zenith angle, 0 at night."""
    latitude, longitude = (torch.deg2rad(part) for part in latitudes(region, size))
    day = when.timetuple().tm_yday
    declination = -math.radians(23.44) * math.cos(2 * math.pi * (day + 10) / 365.25)
    hour_angle = math.pi * (when.hour + when.minute / 60 - 12) / 12 + longitude
    high = torch.sin(latitude) * math.sin(declination)
    return (high + torch.cos(latitude) * math.cos(declination) * torch.cos(hour_angle)).clamp(min=0)


@functools.cache
def nearest_radar(region: str, size: int) -> tuple[Tensor, Tensor]:
    """(size, size) distance in radar pixels to the closest of a region's radars, and which one it is."""
    dice = random.Random(torch_seed(0, f"radars/{region}"))
    # a jittered lattice keeps them apart, as those who plan a network do
    cells = [(row, column) for row in range(3) for column in range(3)]
    lattice = [(row + dice.uniform(0.1, 0.9), column + dice.uniform(0.1, 0.9)) for row, column in cells]
    sites = torch.tensor(lattice) * size / 3
    along = torch.arange(size, dtype=torch.float32) + 0.5
    apart = torch.hypot(along[None, :, None] - sites[:, 0, None, None], along[None, None] - sites[:, 1, None, None])
    distance, which = apart.min(dim=0)
    return distance, which


@functools.cache
def covered(region: str, size: int) -> Tensor:
    """(size, size), True where some radar looks: all but 0 to 12 % of the pixels, the farthest from any."""
    dice = random.Random(torch_seed(0, f"coverage/{region}"))
    distance, _ = nearest_radar(region, size)
    blind = max(0.0, dice.uniform(-0.04, 0.12))
    return distance <= torch.quantile(distance.flatten(), 1 - blind)


def radar_offset_km(size: int) -> float:
    """How far the radar's centre lies from the satellite's: half a pixel where 5/6 of the size is odd."""
    inner = size // FACTOR
    first = (size - inner) // 2
    return (first + (inner - 1) / 2 - (size - 1) / 2) * SATELLITE_KM
