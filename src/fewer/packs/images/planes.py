"""Operations on images as the steps that C takes, and the function that runs them.

What is decided here: which buffer each value lies in (one that is no longer read is used again), whether a convolution
is computed from its kept weights or densely, and how many images pass through together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from fewer.packs.images.choice import Way, units, way
from fewer.packs.images.layout import Geometry, Layout, all_phases, phases_of, reach, spaced
from fewer.packs.images.operations import Convolution, Join, Map, Operation, Pool, Resize, Three
from fewer.packs.images.together import SIDE, images_beside, images_together
from fewer.packs.images.weights import dense_weights, panel_weights, sparse_weights
from fewer.packs.runtime.chain import NOTHING
from fewer.packs.runtime.ops import Array

__all__ = ["Images", "kernels"]

_planes: ModuleType | None
try:
    from fewer.packs import _planes  # type: ignore[attr-defined, no-redef]
except ImportError:  # built without a compiler
    _planes = None

_SPARSE, _DENSE, _MAP, _POOL, _SPACED, _RESIZE, _PANEL = range(7)
_NOWHERE: tuple[int, ...] = (0,) * 5

Step = tuple[Any, ...]


def kernels() -> ModuleType | None:
    """The compiled kernels, if they were built."""
    return _planes


@dataclass
class Images:
    """Operations from some values to others, compiled for one image and for several together."""

    operations: Sequence[Operation]
    inputs: Mapping[str, tuple[int, Three]]  # channels and places of each
    outputs: Mapping[str, tuple[int, Three]]
    layout: Layout
    shapes: Mapping[str, tuple[int, ...]]  # of outputs, without the samples
    beside: Images | None = None  # the same with images side by side, where that may be faster
    _ready: dict[int, Any] = field(default_factory=dict)

    @cached_property
    def together(self) -> int:
        """How many images pass through at once, where there are several."""
        return 1 if self.layout.side else images_together(self.operations, self.layout)

    @cached_property
    def _worth(self) -> int:
        """From how many samples on they pass side by side."""
        return images_beside(self.operations, self.layout, self.beside.layout) if self.beside else 0

    def __call__(self, *inputs: Array) -> tuple[Array, ...]:
        """Values (samples, *shape) as `outputs` names them, from contiguous arrays."""
        samples = len(inputs[0])
        if samples == 1 and 1 in self._ready:
            return self._ready[1](*inputs)  # type: ignore[no-any-return]
        if self.beside is None or not self._worth or samples < self._worth:
            return self._behind(inputs)
        few = samples % SIDE
        if few == 0 or few >= self._worth:
            return self.beside(*inputs)
        parts = self.beside(*(x[:-few] for x in inputs)), self._behind(tuple(x[-few:] for x in inputs))
        return tuple(np.concatenate(same) for same in zip(*parts))

    def _behind(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        images = 1 if len(inputs[0]) < 2 else self.together
        if images not in self._ready:
            self._ready[images] = self.compiled(images)
        answers: tuple[Array, ...] = self._ready[images](*inputs)
        return answers

    def compiled(self, images: int) -> Any:
        """The steps in C."""
        assert _planes is not None
        writer = Writer(self, self.layout.geometries(images), images)
        given = tuple(channels * math.prod(size) for channels, size in self.inputs.values())
        made = tuple(self.shapes[name] for name in self.outputs)
        return _planes.Planes(writer.steps, tuple(writer.buffers), given, made, images, self.layout.side)

    def room(self, images: int) -> int:
        """Numbers in all buffers."""
        numbers = sum(Writer(self, self.layout.geometries(images), images).buffers)
        return numbers * SIDE if self.layout.side else numbers


@dataclass(frozen=True)
class Lattice:
    """Where the places of a value lie: buffer, first number, and steps along channel, image and three axes."""

    buffer: int
    first: int
    steps: tuple[int, ...]


class Writer:
    """Steps, one operation after the other. Buffers are numbered: scratch first, then inputs, then outputs."""

    def __init__(self, images: Images, geometries: Mapping[str, Geometry], count: int) -> None:
        self.images, self.geometries, self.count, self.layout = images, geometries, count, images.layout
        self.steps: list[Step] = []
        self.buffers: list[int] = []
        self._free: dict[tuple[Any, ...], list[int]] = {}
        self._held: dict[str, tuple[int, tuple[Any, ...]]] = {}  # buffer of a value, and what it may be used for again
        self._last = self._last_readings()
        self._readers = Counter(name for one in images.operations for name in _sources(one))
        self._external: list[tuple[str, bool, int]] = []
        for place, one in enumerate(images.operations):
            self._write(one)
            for name in [name for name in self._held if self._last.get(name, place) <= place]:
                buffer, kind = self._held.pop(name)
                self._free.setdefault(kind, []).append(buffer)
        self._number_external()

    def _last_readings(self) -> dict[str, int]:
        found: dict[str, int] = dict.fromkeys(self.images.outputs, len(self.images.operations))
        for place, one in enumerate(self.images.operations):
            names = [*_sources(one), *([phases_of(one, self.layout.side)] if isinstance(one, Convolution) else [])]
            found |= {name: max(place, found.get(name, 0)) for name in names}
        return found

    def _buffer(self, name: str, kind: object) -> int:
        """A buffer for a value: a free one that held the like, whose zeros are where this one wants them."""
        size = self.geometries[name].channel * self.layout.channels[name]
        key = (self.geometries[name], self.layout.sizes[name], self.layout.channels[name], kind)
        if free := self._free.get(key):
            buffer = free.pop()
        else:
            self.buffers.append(size)
            buffer = len(self.buffers) - 1
        self._held[name] = buffer, key
        return buffer

    def _lattice(self, name: str) -> Lattice:
        geometry = self.geometries[name]
        return Lattice(self._held[name][0], geometry.origin, (geometry.channel, geometry.image, *geometry.steps))

    def _outside(self, name: str, given: bool) -> Lattice:
        """A value as numpy holds it; its number is known when all buffers are."""
        channels, size = (self.images.inputs if given else self.images.outputs)[name]
        places = math.prod(size)
        self._external.append((name, given, len(self.steps)))
        return Lattice(-1, 0, (places, channels * places, size[1] * size[2], size[2], 1))

    def _number_external(self) -> None:
        numbers = {(name, True): len(self.buffers) + i for i, name in enumerate(self.images.inputs)}
        start = len(self.buffers) + len(self.images.inputs)
        numbers |= {(name, False): start + i for i, name in enumerate(self.images.outputs)}
        for name, given, place in self._external:
            kind, source, added, target, *rest = self.steps[place]
            number = numbers[name, given]
            self.steps[place] = (kind, number, added, target, *rest) if given else (kind, source, added, number, *rest)

    def _write(self, one: Operation) -> None:
        for name in _sources(one):
            if name in self.images.inputs and name not in self._held and not self._straight_in(one):
                self._buffer(name, "lattice")
                self._copy(self._outside(name, True), self._lattice(name), self.layout.channels[name],
                           self.layout.sizes[name])  # fmt: skip
        match one:
            case Convolution():
                self._convolve(one)
            case Map():
                source = self._outside(one.source, True) if self._straight_in(one) else self._lattice(one.source)
                size = self.layout.sizes[one.target]
                self._copy(source, self._made(one), self.layout.channels[one.target], size, one)
            case Pool() | Resize():
                self._read_whole(one)
            case Join():
                self._join(one)
        if one.target in self.images.outputs and not self._straight_out(one):
            size = self.layout.sizes[one.target]
            source, target = self._lattice(one.target), self._outside(one.target, False)
            self._copy(source, target, self.layout.channels[one.target], size)

    def _straight_in(self, one: Operation) -> bool:
        """Whether it reads an input where numpy holds it, since nobody else wants it otherwise."""
        return (
            isinstance(one, Map)
            and not one.added
            and one.source in self.images.inputs
            and self._readers[one.source] == 1
        )

    def _straight_out(self, one: Operation) -> bool:
        """Whether it writes an output where numpy holds it."""
        alone = one.target in self.images.outputs and not self._readers[one.target]
        return alone and isinstance(one, Map | Pool | Resize)

    def _made(self, one: Operation) -> Lattice:
        """Where an operation writes: where numpy holds an output that nobody here reads, or a buffer."""
        if self._straight_out(one):
            return self._outside(one.target, False)
        self._buffer(one.target, "lattice")
        return self._lattice(one.target)

    def _copy(self, source: Lattice, target: Lattice, channels: int, size: Three, one: Map | None = None) -> None:
        added = self._lattice(one.added) if one and one.added else Lattice(-1, 0, _NOWHERE)
        factor, shift = (one.factor, one.shift) if one else (None, None)
        sizes = (channels, self.count, *size)
        rest = (sizes, source.first, source.steps, added.first, added.steps, target.first, target.steps, factor, shift)
        activation = one.activation if one else NOTHING
        self.steps.append((_MAP, source.buffer, added.buffer, target.buffer, activation, rest))

    def _join(self, one: Join) -> None:
        buffer, before, geometry = self._buffer(one.target, "lattice"), 0, self.geometries[one.target]
        for name in one.sources:
            whole, channels = self._lattice(one.target), self.layout.channels[name]
            part = Lattice(buffer, whole.first + before * geometry.channel, whole.steps)
            self._copy(self._lattice(name), part, channels, self.layout.sizes[name])
            before += channels

    def _read_whole(self, one: Pool | Resize) -> None:
        """What makes a value of another size."""
        source, target = self._lattice(one.source), self._made(one)
        sizes = (self.layout.channels[one.target], self.count, *self.layout.sizes[one.target])
        places = (sizes, source.first, source.steps, target.first, target.steps, self.layout.sizes[one.source])
        rest: tuple[Any, ...]
        if isinstance(one, Pool):
            kind = _POOL
            rest = (one.window, one.stride, one.padding, one.dilation, one.mean, one.count_padding)
        else:
            kind, rest = _RESIZE, (*one.low, *one.share)
        self.steps.append((kind, source.buffer, -1, target.buffer, NOTHING, (*places, *rest)))

    def _phases(self, one: Convolution) -> None:
        """Every step-th row and column by itself, those that the convolution reads."""
        name, inside = phases_of(one), self.layout.sizes[one.source]
        self._buffer(name, ("phases", inside))
        source, target = self._lattice(one.source), self._lattice(name)
        count, channels = math.prod(one.stride), self.layout.channels[one.source]
        for number, phase in enumerate(all_phases(one.stride)):
            depth, height, width = (-(-(n - r) // s) for n, r, s in zip(inside, phase, one.stride))
            if min(depth, height, width) < 1:
                continue
            away = sum(r * step for r, step in zip(phase, source.steps[2:]))
            steps = (*source.steps[:2], *(s * step for s, step in zip(one.stride, source.steps[2:])))
            part = Lattice(source.buffer, source.first + away, steps)
            channel = self.geometries[name].channel
            into = (channel * count, *target.steps[1:])
            self._copy(part, Lattice(target.buffer, target.first + number * channel, into), channels,
                       (depth, height, width))  # fmt: skip

    def _convolve(self, one: Convolution) -> None:
        read, side = phases_of(one, self.layout.side), self.layout.side
        if read not in self._held:
            self._phases(one)
        geometry, padded = self.geometries[one.target], self.layout.padded(one.target)
        size = self.layout.sizes[one.target]
        self._buffer(one.target, "lattice" if side else "wiped" if padded else "not wiped")
        source, target = self._lattice(read), self._lattice(one.target)
        added = self._lattice(one.added) if one.added else Lattice(-1, 0, _NOWHERE)
        offsets, back = self._offsets(one, self.geometries[read])
        if spaced(one, side):
            # the channel is within each weight's distance
            steps = (0, source.steps[1], *(s * step for s, step in zip(one.stride, source.steps[2:])))
            sizes: tuple[Any, ...] = (
                (len(one.weight), self.count, *size), source.first - back, steps, added.first, added.steps,
                target.first, target.steps,
            )  # fmt: skip
            kind, rest = _SPACED, sparse_weights(one, offsets)
        else:
            sizes = (
                len(one.weight), geometry.count(size), geometry.image, source.first - back, added.first,
                added.steps[0], target.first, target.steps[0],
            )  # fmt: skip
            match way(one, size, geometry):
                case Way.DENSE:
                    kind, rest = _DENSE, dense_weights(one, offsets, *units(size, geometry))
                case Way.PANEL:
                    kind, rest = _PANEL, panel_weights(one, offsets, *units(size, geometry), images=self.count)
                case Way.SPARSE:
                    holes = geometry.holes(size) if padded else np.zeros((0, 2), np.uint32)
                    kind, rest = _SPARSE, (*sparse_weights(one, offsets), holes)
        self.steps.append((kind, source.buffer, added.buffer, target.buffer, one.activation, (*sizes, *rest)))

    def _offsets(self, one: Convolution, geometry: Geometry) -> tuple[Array, int]:
        """From the first place that is read to each tap (groups, inputs, depth, height, width), and how far that
        place lies before the first output."""
        taps, steps = reach(one, self.layout.side), geometry.steps
        back = sum(max(0, -min(place for _, place in axis)) * step for axis, step in zip(taps, steps))
        phases = 1 if spaced(one, self.layout.side) else math.prod(one.stride)
        groups, inputs = one.groups, one.weight.shape[1]
        found = np.arange(groups * inputs).reshape(groups, inputs, 1, 1, 1) * (phases * geometry.channel) + back
        weights = (one.stride[1] * one.stride[2], one.stride[2], 1)
        for axis, (along, step, weight) in enumerate(zip(taps, steps, weights)):
            shift = np.array([phase * weight * geometry.channel + place * step for phase, place in along])
            found = found + shift.reshape([-1 if a == axis + 2 else 1 for a in range(5)])
        return found, back


def _sources(one: Operation) -> tuple[str, ...]:
    """The values that an operation reads."""
    if isinstance(one, Join):
        return one.sources
    added = one.added if isinstance(one, Convolution | Map) else ""
    return (one.source, added) if added else (one.source,)
