"""Where and in what kind of weather a generated sequence lies: regions with their climate, and regimes drawn per scene.

Wet fractions (share of radar pixels at 0.2 mm/h or more) of the seven core regions are the competition's own, measured
on its training files; those of the three transfer regions, the places on the map and the regimes are ours.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fewer.core.errors import UserError
from fewer.core.seed import torch_seed
from fewer.core.settings import nearest
from fewer.systems.nowcast.task.files.layout import CORE, Place

__all__ = ["CORE", "REGIMES", "REGIONS", "Regime", "Region", "Scene", "checked_regions", "draw_scene"]


@dataclass(frozen=True)
class Region:
    """A square of 3024 km seen by the satellite, with radars over its central 504 km."""

    latitude: float  # degrees north, of the centre
    longitude: float  # degrees east
    land: float  # share of land
    convective: float  # how much its rain is thunderstorms rather than fronts, 1 on average
    wet: dict[int, float]  # wet fraction by year

    def wet_fraction(self, year: int) -> float:
        """Of that year, or the mean of the known ones."""
        return self.wet.get(year, sum(self.wet.values()) / len(self.wet))


REGIONS: dict[str, Region] = {
    "boxi_0015": Region(48.5, 10.0, 0.80, 1.1, {2019: 0.0732, 2020: 0.0807}),
    "boxi_0034": Region(52.0, 16.0, 0.75, 1.0, {2019: 0.0602, 2020: 0.0873}),
    "boxi_0076": Region(43.5, 2.0, 0.60, 1.3, {2019: 0.0544, 2020: 0.0414}),
    "roxi_0004": Region(56.5, -3.5, 0.40, 0.6, {2019: 0.1050, 2020: 0.1410}),
    "roxi_0005": Region(51.0, 5.0, 0.60, 0.8, {2019: 0.0943, 2020: 0.1114}),
    "roxi_0006": Region(59.0, 12.0, 0.65, 0.7, {2019: 0.1074, 2020: 0.1069}),
    "roxi_0007": Region(39.5, -4.0, 0.55, 1.5, {2019: 0.0227, 2020: 0.0253}),
    "roxi_0008": Region(54.0, 24.0, 0.85, 0.9, {2019: 0.1200, 2020: 0.1250}),
    "roxi_0009": Region(46.0, 15.0, 0.80, 1.2, {2019: 0.1300, 2020: 0.1350}),
    "roxi_0010": Region(62.0, 24.0, 0.80, 0.7, {2019: 0.1300, 2020: 0.1380}),
}


@dataclass(frozen=True)
class Regime:
    """A kind of weather: what is drawn for a scene lies between the two numbers of each pair."""

    share: float  # of all scenes, in a region of average convection
    wetness: float  # wet fraction over the region's
    slope: tuple[float, float]  # spectral density ~ wavenumber^-slope
    tau_hours: tuple[float, float]  # how long a structure of 10 km lives
    exponent: tuple[float, float]  # lifetime ~ size^exponent
    speed_kmh: float  # mean of the wind that carries it
    top_km: float  # how much higher cloud tops are per unit of the rain field


REGIMES: dict[str, Regime] = {
    "stratiform": Regime(0.35, 1.5, (3.05, 3.35), (0.51, 0.68), (0.55, 0.80), 55.0, 2.6),
    "convective": Regime(0.25, 0.9, (2.75, 3.05), (0.43, 0.61), (0.55, 0.75), 38.5, 4.2),
    "showers": Regime(0.25, 0.9, (2.95, 3.15), (0.47, 0.64), (0.55, 0.90), 49.5, 3.2),
    "dry": Regime(0.15, 0.1, (2.95, 3.25), (0.43, 0.68), (0.55, 0.90), 35.0, 2.8),
}
_SPREAD = 0.55  # of the logarithm of the wet fraction within a regime
_WETTEST = 0.45


@dataclass(frozen=True)
class Scene:
    """Everything that one sequence is made from; equal scenes give equal weather."""

    seed: int
    region: str
    start: datetime  # UTC, of the first image
    regime: str
    wet: float  # share of pixels at 0.2 mm/h or more, expected
    slope: float
    tau_hours: float
    exponent: float
    speed_kmh: float
    heading: float  # radians, counter-clockwise from east: where the wind blows to
    top_km: float


def draw_scene(place: Place, *, seed: int, name: str, start: datetime | None = None) -> Scene:
    """The scene of that name: its season, hour, regime and wind; any order of drawing gives the same."""
    region, year = place
    own = torch_seed(seed, f"weather/{region}/{year}/{name}")
    dice, climate = random.Random(own), REGIONS[region]
    quarters = 365 * 96  # of an hour, in a year
    when = start or datetime(year, 1, 1) + timedelta(minutes=15 * dice.randrange(quarters))
    shares = _shares(climate, when)
    kind = dice.choices(list(shares), list(shares.values()))[0]
    regime = REGIMES[kind]
    scale = climate.wet_fraction(year) / sum(each.share * each.wetness for each in REGIMES.values())
    wet = scale * regime.wetness * math.exp(_SPREAD * dice.gauss(0, 1) - _SPREAD**2 / 2)
    return Scene(
        seed=own,
        region=region,
        start=when,
        regime=kind,
        wet=min(max(wet, 1e-4), _WETTEST),
        slope=dice.uniform(*regime.slope),
        tau_hours=dice.uniform(*regime.tau_hours),
        exponent=dice.uniform(*regime.exponent),
        speed_kmh=dice.gammavariate(5.0, regime.speed_kmh / 5.0),
        heading=dice.gauss(0.15, 0.8),  # mostly from the west
        top_km=regime.top_km,
    )


def _shares(climate: Region, when: datetime) -> dict[str, float]:
    """Chance of each regime: thunderstorms are an affair of summer afternoons."""
    summer = -math.cos(2 * math.pi * (when.timetuple().tm_yday - 15) / 365.25)  # -1 in January, 1 in July
    afternoon = math.cos(2 * math.pi * (when.hour + climate.longitude / 15 - 16) / 24)
    factor = climate.convective * (1 + 0.7 * summer) * (1 + 0.3 * afternoon)
    shares = {name: regime.share for name, regime in REGIMES.items()}
    shares["convective"] = min(shares["convective"] * factor, shares["convective"] + shares["stratiform"] - 0.05)
    shares["stratiform"] += REGIMES["convective"].share - shares["convective"]
    return shares


def checked_regions(regions: Sequence[str]) -> tuple[str, ...]:
    """The same, or the line that says which is unknown."""
    for name in regions:
        if name not in REGIONS:
            raise UserError(f"region {name!r}", f"some of {', '.join(REGIONS)}", nearest(name, list(REGIONS)))
    if not regions:
        raise UserError("no region", f"some of {', '.join(REGIONS)}")
    return tuple(regions)
