"""A network in its environment: where access points stand and how strongly each is heard at every place."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.spatial import cKDTree

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Floats, Integers, generator
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.world.placement import PLACEMENT_RULES, checked_positions
from fewer.systems.cellfree.task.world.shadowing import MapShadows, Shadows, SpectralShadows, fft_maps, row_maps

__all__ = ["Deployment", "Radio", "SimulatedRadio"]

_REACH = 64  # access points around a phone that can be its strongest or serve it, in networks larger than this
_CHUNK = 4096  # phones computed at once
_LARGEST_MAPS = 2_000_000_000  # bytes


class Radio(Protocol):
    """How strongly access points are heard; simulated, measured on a grid, or logged on a drive."""

    def gain_db(self, phones: Floats, links: Integers | None) -> Floats:
        """(phones, L), or (phones, links) of the access points in `links`."""

    def places(self, random: np.random.Generator, count: int, *, part: str) -> Floats:
        """(count, 2) places where phones are; parts of a logged drive do not overlap."""


@dataclass(frozen=True)
class SimulatedRadio:
    """R = gain at 1 km - 10 alpha log10(d / 1 km) + F, the paper's equation 5, with d in three dimensions."""

    access_points: Floats
    side_m: float
    height_m: float
    wrap: bool
    exponent: float
    gain_at_1km_db: float
    shadows: Shadows | None

    def path_gain_db(self, phones: Floats, links: Integers | None = None) -> Floats:
        """What distance alone predicts."""
        others = self.access_points[None] if links is None else self.access_points[links]
        apart = phones[:, None] - others
        if self.wrap:
            apart = apart - self.side_m * np.round(apart / self.side_m)
        distance_m = np.sqrt((apart**2).sum(axis=-1) + self.height_m**2)
        return self.gain_at_1km_db - 10 * self.exponent * np.log10(distance_m / 1000.0)  # type: ignore[no-any-return]

    def gain_db(self, phones: Floats, links: Integers | None = None) -> Floats:
        """See `Radio.gain_db`."""
        gain = self.path_gain_db(phones, links)
        return gain if self.shadows is None else gain + self.shadows.at(phones, links)

    def places(self, random: np.random.Generator, count: int, *, part: str) -> Floats:
        """Uniform over the area; independent draws never coincide, so parts need no care."""
        return random.uniform(0.0, self.side_m, (count, 2))


@dataclass(frozen=True)
class Deployment:
    """Access points and their radio environment, fixed for good: what is learned here is true here only."""

    access_points: Floats  # (L, 2) in metres
    height_m: float
    side_m: float
    radio: Radio
    wrap: bool = False
    seed: int = 0
    silent_db: float = -math.inf  # a gain below it was not heard: no report arrives
    corner_m: tuple[float, float] = (0.0, 0.0)  # where the area begins; a user's own coordinates may begin anywhere
    names: tuple[str, ...] = ()  # of the access points; none: they are numbers
    _tree: cKDTree = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        positions = checked_positions(self.access_points, "access points")
        object.__setattr__(self, "access_points", positions)
        box = self.side_m if self.wrap else None
        object.__setattr__(self, "_tree", cKDTree(positions % self.side_m if self.wrap else positions, boxsize=box))

    @classmethod
    def simulate(cls, settings: Settings) -> Deployment:
        """Draw access points and shadowing from the settings' seed."""
        seed = settings.deployment_seed
        rule = PLACEMENT_RULES[settings.placement]
        positions = rule(generator(seed, "access points"), settings.access_points, settings.side_m)
        positions = checked_positions(positions, "access points")
        radio = SimulatedRadio(
            access_points=positions,
            side_m=settings.side_m,
            height_m=settings.height_m,
            wrap=settings.wrap,
            exponent=settings.exponent,
            gain_at_1km_db=settings.gain_at_1km_db,
            shadows=_shadows(settings, len(positions)) if settings.shadowing_db else None,
        )
        return cls(positions, settings.height_m, settings.side_m, radio, wrap=settings.wrap, seed=seed)

    def __len__(self) -> int:
        return len(self.access_points)

    def name(self, access_point: int) -> str:
        """What its owner calls it, or its number."""
        return self.names[access_point] if self.names else str(access_point)

    @property
    def spacing_m(self) -> float:
        """Side of the square that one access point has to itself."""
        return self.side_m / math.sqrt(len(self))

    def grid(self, pixels: int) -> Floats:
        """(pixels * pixels, 2) centres of a grid over the area, row by row from the south."""
        centres = (np.arange(pixels) + 0.5) * self.side_m / pixels
        places = np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2) + np.array(self.corner_m)
        return np.asarray(places)

    def gain_db(self, phones: Floats) -> Floats:
        """(phones, L) large-scale gains: path loss and shadowing."""
        return self.gain_to(phones, None)

    def gain_to(self, phones: Floats, links: Integers | None) -> Floats:
        """(phones, links) gains of the access points in `links`; all of them for None."""
        phones = np.asarray(phones, dtype=np.float64)
        if phones.ndim != 2 or phones.shape[1] != 2 or not np.isfinite(phones).all():
            raise UserError(f"phones of shape {phones.shape}, finite or not", "finite (phones, 2) metres")
        parts = [slice(first, first + _CHUNK) for first in range(0, len(phones), _CHUNK)] or [slice(0, 0)]
        return np.concatenate([self.radio.gain_db(phones[p], None if links is None else links[p]) for p in parts])

    def near(self, places: Floats, count: int) -> Integers:
        """(places, count) access points, closest first."""
        if count > len(self):
            raise UserError(f"{count} closest of {len(self)} access points", f"at most {len(self)}")
        places = places % self.side_m if self.wrap else places
        found: Integers = self._tree.query(places, k=np.arange(1, count + 1))[1]
        return found

    def audible(self, phones: Floats) -> tuple[Integers, Floats]:
        """(phones, n) access points that may matter to each phone, and their gains; all of them in small networks."""
        if len(self) <= 2 * _REACH:
            everyone = np.broadcast_to(np.arange(len(self)), (len(phones), len(self)))
            return everyone, self.gain_db(phones)
        near = self.near(phones, _REACH)
        return near, self.gain_to(phones, near)

    def displacement_m(self, origin: Floats, other: Floats) -> Floats:
        """From origin to other, the short way round where edges touch."""
        apart = other - origin
        return apart - self.side_m * np.round(apart / self.side_m) if self.wrap else apart

    def phones(self, count: int, *, part: str) -> Floats:
        """(count, 2) places of phones; each part (train, test, ...) has its own stream."""
        return self.radio.places(generator(self.seed, f"phones/{part}"), count, part=part)


def _shadows(settings: Settings, count: int) -> Shadows:
    """One common field and one of its own per access point, mixed for the wanted correlation between sites."""
    random = generator(settings.deployment_seed, "shadowing")
    common, own = math.sqrt(settings.site_correlation), math.sqrt(1 - settings.site_correlation)
    if settings.shadowing == "spectral":
        waves = SpectralShadows.draw(random, count + 1, decorrelation_m=settings.decorrelation_m)
        mixed = common * waves.amplitudes[:1] + own * waves.amplitudes[1:]
        return SpectralShadows(waves.frequencies, (settings.shadowing_db * mixed).astype(np.float32))
    pixels = math.ceil(settings.side_m / settings.pixel_m)
    if 4 * (count + 1) * pixels**2 > _LARGEST_MAPS:
        raise UserError(
            f"maps of {pixels} x {pixels} pixels for {count} access points",
            "less than 2 GB of maps",
            "set shadowing=spectral, which stores none",
        )
    decorrelation_px = settings.decorrelation_m / settings.pixel_m
    if settings.shadowing == "fft":
        maps = fft_maps(random, count + 1, pixels, decorrelation_px=decorrelation_px, wrap=settings.wrap)
    else:
        neighbours = int(settings.shadowing.removeprefix("claussen"))
        maps = row_maps(random, count + 1, pixels, decorrelation_px=decorrelation_px, neighbours=neighbours)
    mixed = np.empty_like(maps[1:])
    for index, map_own in enumerate(maps[1:]):
        mixed[index] = settings.shadowing_db * (common * maps[0] + own * map_own)
    return MapShadows(mixed, settings.pixel_m, wrap=settings.wrap)
