"""Windows to learn from in a user's own files: so many images seen, so many maps forecast, cut out of each event.

What is seen and what is forecast may lie on one grid (radar to radar) or on two of one projection, the first with
pixels a whole number of times as large. Images that are missing are marked; without its last image, or without any
truth, a window does not count.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fewer.core.errors import NoFiles, UserError
from fewer.systems.nowcast.task.files.own.alignment import between, corner_of, factor_of, slots_of
from fewer.systems.nowcast.task.files.own.images import Images
from fewer.systems.nowcast.task.files.own.reading import read_images
from fewer.systems.nowcast.task.files.own.standard import standardised
from fewer.systems.nowcast.task.files.own.table import Line, lines
from fewer.systems.nowcast.task.settings import OWN_LEADS, OWN_SEEN, Settings
from fewer.systems.nowcast.task.windows import Geometry, Windows

__all__ = ["Event", "OwnWindows", "Split", "opened"]

_LARGEST = 96  # pixels of a window if nobody says
_MULTIPLE = 8  # poolings of the models
_SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Event:
    """One line of the table, read."""

    line: Line
    seen: Images
    truth: Images
    seen_slots: NDArray[np.int64]  # image at each regular time, -1: missing
    truth_slots: NDArray[np.int64]
    step_minutes: float  # 0 of a single image
    corner: tuple[int, int]  # row and column of the truth's first pixel among those of what is seen, times the factor

    def starts(self, geometry: Geometry) -> list[int]:
        """Slots of the last image seen, of which that image and some truth are there."""
        found = []
        for slot in range(geometry.seen - 1, len(self.seen_slots)):
            ahead = self.truth_slots[slot + 1 : slot + 1 + geometry.leads]
            if self.seen_slots[slot] >= 0 and len(ahead) == geometry.leads and (ahead >= 0).any():
                found.append(slot)
        return found


class Split:
    """Windows of the events of one split, tile by tile."""

    in_memory = False

    def __init__(self, events: list[Event], geometry: Geometry, size: int) -> None:
        self.geometry, self.size = geometry, size
        self._index = [
            (event, start, tile)
            for event in events
            for start in event.starts(geometry)
            for tile in _tiles(event, size, geometry)
        ]

    def __len__(self) -> int:
        return len(self._index)

    def take(self, index: Tensor) -> Windows:
        """The windows at a 1-D index."""
        parts = [self._window(*self._index[k]) for k in index.tolist()]
        satellite, missing, rate, valid = (torch.from_numpy(np.stack(part)) for part in zip(*parts))
        return Windows(satellite, missing, rate, valid, torch.zeros(len(index), dtype=torch.int64))

    def _window(self, event: Event, start: int, tile: tuple[int, int]) -> tuple[NDArray[np.float32], ...]:
        geometry, size = self.geometry, self.size
        bands = len(event.seen.channels)
        satellite = np.zeros((geometry.seen, bands, size, size), np.float32)
        missing = np.ones((geometry.seen, size, size), np.float32)
        rows, columns = _seen_part(event, tile, size, geometry)
        for k, image in enumerate(event.seen_slots[start + 1 - geometry.seen : start + 1]):
            if image >= 0:
                _fill_(satellite[k], missing[k], event.seen, int(image), rows, columns)
        truth = np.full((geometry.leads, size, size), np.nan, np.float32)
        part = slice(tile[0], tile[0] + size), slice(tile[1], tile[1] + size)
        for k, image in enumerate(event.truth_slots[start + 1 : start + 1 + geometry.leads]):
            if image >= 0:
                truth[k] = event.truth.rates[image][part]
        return satellite, missing, np.nan_to_num(truth), np.isfinite(truth).astype(np.float32)


def _fill_(
    satellite: NDArray[np.float32],
    missing: NDArray[np.float32],
    images: Images,
    image: int,
    rows: slice,
    columns: slice,
) -> None:
    """The part of an image that lies in rows and columns, which may reach beyond it."""
    height, width = images.grid.shape
    inside = slice(max(rows.start, 0), min(rows.stop, height)), slice(max(columns.start, 0), min(columns.stop, width))
    if inside[0].stop <= inside[0].start or inside[1].stop <= inside[1].start:
        return
    there = tuple(
        slice(part.start - whole.start, part.stop - whole.start) for part, whole in zip(inside, (rows, columns))
    )
    values, absent = standardised(images.values[image][:, inside[0], inside[1]], images.channels)
    satellite[:, there[0], there[1]], missing[there] = values, absent


def _seen_part(event: Event, tile: tuple[int, int], size: int, geometry: Geometry) -> tuple[slice, slice]:
    """The window of what is seen, as many of its own pixels, centred on the tile."""
    inner = size // geometry.factor
    first = [(corner + start) // geometry.factor - (size - inner) // 2 for corner, start in zip(event.corner, tile)]
    return slice(first[0], first[0] + size), slice(first[1], first[1] + size)


def _tiles(event: Event, size: int, geometry: Geometry) -> list[tuple[int, int]]:
    """Upper left corners of tiles that cover the truth, whole pixels of what is seen, overlapping at the far edges."""
    found = []
    for corner, length in zip(event.corner, event.truth.grid.shape):
        last = length - size
        first = -corner % geometry.factor
        places = [*range(first, last + 1, size)] or [first]
        end = last - (last - first) % geometry.factor
        if end > places[-1]:
            places.append(end)
        found.append(places)
    return [(row, column) for row in found[0] for column in found[1]]


class OwnWindows:
    """A folder: its events, the geometry that they have in common, and their windows."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.folder = settings, Path(settings.data)
        self._read: dict[tuple[tuple[Path, ...], tuple[str, ...]], Images] = {}
        self.lines = lines(self.folder)
        self.events = [self._event(line) for line in self.lines]
        self.geometry = self._geometry()
        self.size = settings.size or self._largest_size()
        self._check_size()

    def split(self, name: str) -> Split:
        """Its windows, or one line if there are none."""
        found = Split([event for event in self.events if event.line.split == name], self.geometry, self.size)
        if not len(found):
            geometry = self.geometry
            needed = f"{geometry.seen} + {geometry.leads} images {geometry.step_minutes:g} minutes apart"
            raise NoFiles(f"{self.folder} without a {name} window", needed, "fewer data nowcast --check")
        return found

    def _images(self, paths: tuple[Path, ...], variables: tuple[str, ...]) -> Images:
        key = paths, variables
        if key not in self._read:
            self._read[key] = read_images(paths, variables=variables)
        return self._read[key]

    def _event(self, line: Line) -> Event:
        seen = _chosen(self._images(line.seen, line.seen_variables), self.settings.bands)
        truth = self._images(line.forecast, line.forecast_variables) if line.forecast else seen
        if not truth.is_rain:
            named = ", ".join(one.name for one in truth.channels)
            raise UserError(
                f"{line.name}: forecasts of {named}", "rain", f"name rain in the column forecast of {self.folder}"
            )
        seen_part, truth_part = (between(one, line.share) for one in (seen, truth))
        step = self.settings.step_minutes or truth.step_minutes  # of the whole, however little is cut out of it
        slots = [slots_of(one, step, truth_part.times[0]) for one in (seen_part, truth_part)]
        return Event(line, seen_part, truth_part, slots[0], slots[1], step, corner_of(seen_part, truth_part, line.name))

    def _geometry(self) -> Geometry:
        found = {}
        for event in self.events:
            bands = tuple(channel.name for channel in event.seen.channels)
            found[factor_of(event.seen, event.truth, event.line.name), event.step_minutes, bands] = event.line.name
        if len(found) > 1:
            (first, one), (second, other) = list(found.items())[:2]
            said = [f"{step:g} min, {factor} to 1, {' '.join(bands)}" for factor, step, bands in (first, second)]
            raise UserError(f"{other} with {said[1]}", f"{said[0]} as {one}", "set step_minutes and bands")
        factor, step, bands = next(iter(found))
        if not step:
            raise UserError(f"{self.folder} with events of one image", "two or more images an event")
        return Geometry(self.settings.seen or OWN_SEEN, self.settings.leads or OWN_LEADS, factor, step, bands)

    def _largest_size(self) -> int:
        shortest = min(min(event.truth.grid.shape) for event in self.events)
        multiple = int(np.lcm(_MULTIPLE, self.geometry.factor))
        return max(min(shortest, _LARGEST) // multiple, 1) * multiple

    def _check_size(self) -> None:
        multiple = int(np.lcm(_MULTIPLE, self.geometry.factor))
        shortest = min(min(event.truth.grid.shape) for event in self.events)
        if self.size % multiple or self.size > shortest:
            raise UserError(f"size {self.size} of maps of {shortest} pixels", f"a multiple of {multiple}, at most that")

    def described(self) -> Iterator[str]:
        """What there is and what would be trained on, line by line."""
        for event in self.events:
            seen, truth = event.seen, event.truth
            rows, columns = truth.grid.shape
            lost = int((event.truth_slots < 0).sum())
            yield (
                f"{event.line.split}: {event.line.name}: {len(truth.times)} maps of {rows} x {columns} pixels of "
                f"{truth.grid.kilometres:.3g} km from {truth.times[0]} to {truth.times[-1]}"
                + (f", {lost} missing" if lost else "") + f", {100 * truth.seen:.0f} % seen"
                + ("" if seen.grid is truth.grid else f"; seen: {len(seen.times)} images of {_names(seen)}")
                + ("" if truth.grid.placed else "; no place")
            )  # fmt: skip
        geometry = self.geometry
        yield (
            f"would see {geometry.seen} images of {' '.join(geometry.bands)} and forecast {geometry.leads} maps, "
            f"{geometry.step_minutes:g} minutes apart, {geometry.factor} to 1, on windows of {self.size} pixels"
        )
        for name in _SPLITS:
            events = [event for event in self.events if event.line.split == name]
            yield f"{name}: {len(Split(events, geometry, self.size))} windows of {len(events)} events"

    def problems(self) -> Iterator[str]:
        """Splits without a window, and what would give them one."""
        geometry = self.geometry
        events = {name: [event for event in self.events if event.line.split == name] for name in _SPLITS}
        longest = {name: max((len(one.truth_slots) for one in held), default=0) for name, held in events.items()}
        leads = min(longest.values()) - geometry.seen
        cure = f"--set leads={leads}" if 0 < leads < geometry.leads else "longer events, or fewer seen and leads"
        for name, held in events.items():
            if not len(Split(held, geometry, self.size)):
                yield (
                    f"no {name} window: {geometry.seen} + {geometry.leads} images in a row are needed, its longest "
                    f"event has {longest[name]}; {cure}"
                )


def _names(images: Images) -> str:
    return " ".join(channel.name for channel in images.channels)


def _chosen(images: Images, bands: tuple[str, ...]) -> Images:
    if not bands:
        return images
    names = [channel.name for channel in images.channels]
    if absent := [name for name in bands if name not in names]:
        raise UserError(f"band {absent[0]}", f"one of {', '.join(names)}")
    order = [names.index(name) for name in bands]
    channels = tuple(images.channels[k] for k in order)
    return dataclasses.replace(images, values=images.values[:, order], channels=channels)


def opened(settings: Settings) -> OwnWindows:
    """Read once for the settings that decide what is read."""
    return _opened(settings.data, settings.bands, settings.seen, settings.leads, settings.step_minutes, settings.size)


@functools.lru_cache(maxsize=2)
def _opened(data: str, bands: tuple[str, ...], seen: int, leads: int, step_minutes: float, size: int) -> OwnWindows:
    return OwnWindows(Settings(data=data, bands=bands, seen=seen, leads=leads, step_minutes=step_minutes, size=size))
