"""How images lie in memory while they pass through convolutions.

Each value is a buffer of channels; a channel holds several images one behind the other, each with its rows (and planes
of rows) apart by a fixed distance, and zeros between them where a convolution reads padding. Rows share their padding:
the end of one is the beginning of the next. Values that a convolution of stride 1, a sum or an activation connects have
the same distances, so that a place is found by one number in all of them. A convolution of another stride reads phases:
every second row and column by itself.

Where sixteen images lie side by side, each number of a buffer is a vector of them: distances are those of one image,
and every convolution reads its source where it lies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fewer.packs.images.operations import Convolution, Join, Map, Operation, Three
from fewer.packs.runtime.ops import Array

__all__ = ["Geometry", "Layout", "phases_of", "reach", "spaced"]

_FEW = 9  # weights for each channel that is read, for which phases are not worth their copies


@dataclass(frozen=True)
class Geometry:
    """Distances in floats, the same for all values that are connected."""

    sizes: Three  # places of an image along each axis, padding included
    gaps: Three  # zeros that are needed around
    images: int
    side: bool = False  # whether a number is one for each of several images, side by side

    @property
    def steps(self) -> Three:
        """From a place to the next along each axis."""
        return self.sizes[1] * self.sizes[2], self.sizes[2], 1

    @property
    def image(self) -> int:
        """From an image to the next."""
        return math.prod(self.sizes)

    @property
    def origin(self) -> int:
        """Of the first place in its channel, with room for its padding: on a line of the cache."""
        room = sum(gap * step for gap, step in zip(self.gaps, self.steps))
        return room if self.side else -(-room // 16) * 16

    @property
    def channel(self) -> int:
        """From a channel to the next: an odd number of vectors, since powers of two would meet in the cache."""
        places = 2 * self.origin + self.images * self.image
        if self.side:
            return places + 1 - places % 2
        vectors = -(-places // 16)
        return 16 * (vectors + 1 - vectors % 2)

    def count(self, size: Sequence[int]) -> int:
        """Places from the first to the last of an image, those between its rows among them."""
        return 1 + sum((n - 1) * step for n, step in zip(size, self.steps))

    def holes(self, size: Sequence[int]) -> Array:
        """Runs (first, length) of places between those of all images, from the first one on."""
        between = np.ones(self.count(size) + (self.images - 1) * self.image, np.bool_)
        lattice = np.add.outer(np.arange(self.images) * self.image, self._places(size)).reshape(-1)
        between[lattice] = False
        edges = np.flatnonzero(np.diff(np.concatenate([[False], between, [False]]).astype(np.int8)))
        return np.stack([edges[::2], edges[1::2] - edges[::2]], axis=1).astype(np.uint32)

    def _places(self, size: Sequence[int]) -> Array:
        axes = [np.arange(n) * step for n, step in zip(size, self.steps)]
        return np.add.outer(np.add.outer(axes[0], axes[1]), axes[2]).reshape(-1)


def spaced(one: Convolution, side: bool = False) -> bool:
    """Whether it reads every second place of its source where it lies: phases would be read by few weights, or every
    place is a vector, as where images lie side by side."""
    if side:
        return True
    few = np.count_nonzero(one.weight) <= _FEW * one.weight.shape[1] * one.groups
    return one.stride[2] == 2 and bool(few)


def phases_of(one: Convolution, side: bool = False) -> str:
    """What a convolution reads: its source, or the source's phases where it has a stride."""
    return one.source if one.stride == (1, 1, 1) or spaced(one, side) else f"{one.source} by {one.stride}"


def reach(one: Convolution, side: bool = False) -> list[list[tuple[int, int]]]:
    """Along each axis, of each tap: the phase that it reads, and how many places away."""
    strides = (1, 1, 1) if spaced(one, side) else one.stride
    return [
        [((i * d - p) % s, (i * d - p) // s) for i in range(k)]
        for k, d, p, s in zip(one.weight.shape[2:], one.dilation, one.padding, strides)
    ]


@dataclass
class Layout:
    """Sizes of all values, and which of them are connected."""

    sizes: dict[str, Three]  # (depth, height, width) of each value, phases among them
    channels: dict[str, int]
    side: bool = False  # whether images lie side by side
    gaps: dict[str, Three] = field(default_factory=dict)  # zeros that somebody reads around a value
    _parent: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        operations: Iterable[Operation],
        sizes: Mapping[str, Three],
        channels: Mapping[str, int],
        *,
        side: bool = False,
    ) -> Layout:
        """With phases added, padding counted, and what is connected connected."""
        found = cls(dict(sizes), dict(channels), side)
        for one in operations:
            if isinstance(one, Convolution):
                found._read_by(one)
                if not spaced(one, side):
                    found._connect(phases_of(one), one.target)
            elif isinstance(one, Map | Join):
                for source in one.sources if isinstance(one, Join) else (one.source,):
                    found._connect(source, one.target)
            if added := getattr(one, "added", ""):
                found._connect(added, one.target)  # type: ignore[union-attr]
        return found

    def _read_by(self, one: Convolution) -> None:
        name, size = phases_of(one, self.side), self.sizes[one.source]
        if name != one.source:
            first, second, third = (-(-n // s) for n, s in zip(size, one.stride))
            self.sizes[name] = first, second, third
            self.channels[name] = self.channels[one.source] * math.prod(one.stride)
        needed, steps = [], one.stride if spaced(one, self.side) else (1, 1, 1)
        for taps, made, inside, step in zip(reach(one, self.side), self.sizes[one.target], self.sizes[name], steps):
            places = [place for _, place in taps]
            needed.append(max(0, -min(places), (made - 1) * step + max(places) + 1 - inside))
        before = self.gaps.get(name, (0, 0, 0))
        depth, height, width = (max(pair) for pair in zip(before, needed))
        self.gaps[name] = depth, height, width

    def _root(self, name: str) -> str:
        while (parent := self._parent.get(name, name)) != name:
            name = parent
        return name

    def _connect(self, one: str, other: str) -> None:
        self._parent[self._root(one)] = self._root(other)

    def geometries(self, images: int) -> dict[str, Geometry]:
        """Of every value: the largest size and gap among those it is connected with."""
        groups: dict[str, list[str]] = {}
        for name in self.sizes:
            groups.setdefault(self._root(name), []).append(name)
        found: dict[str, Geometry] = {}
        for names in groups.values():
            gaps = [self.gaps.get(name, (0, 0, 0)) for name in names]
            wide = [max(self.sizes[n][a] + g[a] for n, g in zip(names, gaps)) for a in range(3)]
            most = [max(g[a] for g in gaps) for a in range(3)]
            geometry = Geometry((wide[0], wide[1], wide[2]), (most[0], most[1], most[2]), images, self.side)
            found |= dict.fromkeys(names, geometry)
        return found

    def padded(self, name: str) -> bool:
        """Whether somebody reads zeros around a value."""
        return any(self.gaps.get(name, ()))


def all_phases(stride: Three) -> Iterable[Three]:
    """Every place inside a step."""
    yield from itertools.product(*map(range, stride))  # type: ignore[misc]
