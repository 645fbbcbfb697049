"""Parts of a program that work on images and become one call into C."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fewer.packs.images.layout import Layout
from fewer.packs.images.operations import Convolution, Resize, Three, able, lowered
from fewer.packs.images.planes import Images, kernels
from fewer.packs.program import Node, Program
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.threads import ALONE, Threads
from fewer.packs.shapes.rules import Shape

__all__ = ["Region", "gathered", "regions"]

_ROOM = 1 << 26  # numbers that the buffers of a region may hold
_SIDE_ROOM = 1 << 23  # and where images lie side by side, beyond the last cache
# without one of these, numpy is as fast
_WORTH = {"conv", "max_pool", "avg_pool", "adaptive_avg_pool", "interpolate", "sigmoid", "tanh", "elu", "gelu"}


@dataclass(frozen=True)
class Region:
    """Nodes `begin` to `end` of a program, run together."""

    begin: int
    end: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    wanted: tuple[tuple[int, ...], ...]  # shapes of inputs, without the samples
    images: Images
    work: float  # multiplications of a sample
    threads: Threads = ALONE

    def __call__(self, *values: Array) -> tuple[Array, ...]:
        """The outputs, from the inputs."""
        samples = len(values[0])
        for value, shape in zip(values, self.wanted):
            if value.shape[1:] != shape or len(value) != samples:
                raise ValueError(f"images of shape {value.shape}, expected (samples, *{shape})")
        given = [np.ascontiguousarray(value, dtype=np.float32) for value in values]
        if self.threads.count == 1:
            return self.images(*given)
        return self.threads.shared(self.images, tuple(given), self.work)

    def only(self, value: Array) -> Array:
        """The only output, from the only input: small networks notice every step in Python."""
        if self.threads.count > 1 or value.shape[1:] != self.wanted[0]:
            return self(value)[0]
        return self.images(np.ascontiguousarray(value, dtype=np.float32))[0]


def regions(program: Program, tensors: Mapping[str, Array], shapes: Mapping[str, Shape]) -> Iterator[Region]:
    """Runs of nodes that C knows, each worth a call, and with buffers that are not too large."""
    if kernels() is None:
        return
    begin = 0
    for end in range(len(program.nodes) + 1):
        if end < len(program.nodes) and able(program.nodes[end], tensors, shapes):
            continue
        if any(node.op in _WORTH for node in program.nodes[begin:end]):
            found = _region(program, begin, end, tensors, shapes)
            if found is not None:
                yield found
        begin = end + 1


def gathered(program: Program, tensors: Mapping[str, Array], shapes: Mapping[str, Shape]) -> Program:
    """The same with what C does not know put off until somebody needs it, so that runs of what it knows are long."""
    done: list[Node] = []
    waiting: list[Node] = []
    made: set[str] = set()  # by those that wait
    for node in program.nodes:
        if not able(node, tensors, shapes):
            waiting.append(node)
            made.add(node.output)
            continue
        if not made.isdisjoint(node.inputs):
            done += waiting
            waiting, made = [], set()
        done.append(node)
    return replace(program, nodes=(*done, *waiting))


def _region(
    program: Program, begin: int, end: int, tensors: Mapping[str, Array], shapes: Mapping[str, Shape]
) -> Region | None:
    nodes = program.nodes[begin:end]
    made = {node.output for node in nodes}
    later = {name for node in program.nodes[end:] for name in node.inputs} | set(program.outputs)
    outputs = tuple(node.output for node in nodes if node.output in later)
    inputs = tuple(
        dict.fromkeys(name for node in nodes for name in node.inputs if name not in made and name not in tensors)
    )
    if len({shapes[name][0] for name in (*inputs, *made)}) != 1:
        return None  # not samples on axis 0
    operations = lowered(nodes, tensors, shapes, set(outputs))
    targets = {one.target for one in operations}
    known = {name: _size(shapes[name]) for name in (*inputs, *targets)}
    sizes = {name: size for name, (_, size) in known.items()}
    channels = {name: count for name, (count, _) in known.items()}
    given, made_here = ({n: known[n] for n in names} for names in (inputs, outputs))
    answers = {name: tuple(shapes[name][1:]) for name in outputs}
    images = Images(operations, given, made_here, Layout.of(operations, sizes, channels), answers)
    # buffers for several images are bounded with those for one
    if images.room(images.together) > _ROOM:
        return None
    if not any(isinstance(one, Resize) for one in operations):
        beside = replace(images, layout=Layout.of(operations, sizes, channels, side=True), _ready={})
        if beside.room(1) <= _SIDE_ROOM:
            images = replace(images, beside=beside)
    work = sum(
        float(np.count_nonzero(one.weight)) * math.prod(known[one.target][1])
        for one in operations if isinstance(one, Convolution)
    )  # fmt: skip
    return Region(begin, end, inputs, outputs, tuple(tuple(shapes[name][1:]) for name in inputs), images, work)


def _size(shape: Sequence[int]) -> tuple[int, Three]:
    first, second, third = (*(1,) * (5 - len(shape)), *shape[2:])
    assert math.prod(shape) > 0
    return shape[1], (first, second, third)
