"""A pack as one C99 file without dependencies, for a microcontroller or a real-time loop.

    export(load("policy.pack"), "policy.c", "policy")

gives `void policy(const float *input, float *output)` for one sample: inputs one after another, then outputs, and
`void policy_batch(const float *input, float *output, int samples)` for several. Every number is a float, whole numbers
and truths too. Kept weights are constants by columns, so that columns of zero inputs are skipped; units that nothing
feeds or nobody reads are gone. Buffers are used again once nobody reads them. What cannot be exported is refused by
name.

Of a pack that takes sequences of any length both functions have one more argument, `int time`, and answer 0, or -1
where it is not from 1 to the longest length, which the file states: `length`, or else the pack's usual one. Where an
operation cannot be written for any length, the file is for that length alone.
"""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically
from fewer.packs.export.c_file import file_text
from fewer.packs.export.c_layers import LAYERS, activation, layer
from fewer.packs.export.c_ops import OPERATIONS, Operation
from fewer.packs.export.c_places import PLACES
from fewer.packs.export.c_sizes import Size, TooFixed, fitted
from fewer.packs.export.c_views import View, assign, number
from fewer.packs.program import Input, Node, Program, dimension
from fewer.packs.runtime.chain import Layer, Stage, fit, joined, pruned
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.runtime import Pack
from fewer.packs.runtime.steps import chains, one_sample

__all__ = ["Footprint", "export"]

_KEYWORDS = (
    " auto break case char const continue default do double else enum extern float for goto if inline int long main "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
)
_WHOLE = 1 << 24  # up to which every whole number is a float
_OPERATIONS: dict[str, Operation] = {**OPERATIONS, **LAYERS, **PLACES}
_ANY_LENGTH = {
    *_OPERATIONS, "linear"
} - {
    "roll", "pad", "put_slice", "conv", "max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "interpolate",
    "index_select", "group_norm", "scatter", "scatter_add",
}  # fmt: skip


@dataclass(frozen=True)
class Footprint:
    """Bytes that one sample takes on a microcontroller: constants in flash, scratch in memory; code comes on top."""

    flash: int
    ram: int


def export(
    pack: Pack, path: str | os.PathLike[str], name: str, *, network: str | None = None, length: int | None = None
) -> Footprint:
    """Write the C file; `network` is the first one of the pack unless named, `length` the longest sequence."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or f" {name} " in _KEYWORDS:
        raise UserError(f"name {name!r}", "a C identifier that is no keyword")
    if network is not None and network not in pack.networks:
        raise UserError(f"network {network!r}", f"one of {', '.join(pack.networks)}")
    chosen = pack.networks[network] if network is not None else next(iter(pack.networks.values()))
    text = source(_for_length(chosen.program, length), pack.tensors(), name)
    write_atomically(path, text.encode())
    found = re.search(r"(\d+) bytes of constants and (\d+) of scratch", text)
    assert found is not None  # the first line of every file
    return Footprint(int(found[1]), int(found[2]))


def _for_length(program: Program, length: int | None) -> Program:
    """The program whose usual length is the longest that the file is for."""
    time = program.time
    if length is None:
        return program
    if time is None:
        raise UserError(f"length {length} of a pack of fixed size", "none", "leave it out")
    if not 1 <= length <= (time.most or length):
        raise UserError(f"length {length}", f"from 1 to {time.most}" if time.most else "at least 1")
    inputs = tuple(Input(item.name, program.shape_of(item, length), item.dtype) for item in program.inputs)
    return Program(inputs, program.nodes, program.outputs, time)


def _array(kind: str, values: Array) -> str:
    """A constant array; {} stands for its name."""
    flat = np.asarray(values).reshape(-1)
    items = [number(float(v)) for v in flat] if kind == "float" else [str(int(v)) for v in flat]
    text = textwrap.fill(", ".join(items or ["0"]), 110, break_long_words=False, break_on_hyphens=False)
    return f"static const {kind} {{}}[{max(1, len(flat))}] = {{{{\n{text}}}}};"


@dataclass
class Writer:
    """Lines of constants and of the function, and where each value lies."""

    tensors: dict[str, Array]
    shapes: dict[str, tuple[int, ...]]
    kinds: dict[str, np.dtype[np.generic]]
    constants: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)
    views: dict[str, View] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    free: list[int] = field(default_factory=list)

    def constant(self, kind: str, values: Array) -> str:
        """The name of a constant array; equal ones are stored once."""
        return self.constants.setdefault(_array(kind, values), f"constant{len(self.constants)}")

    def room(self, shape: Sequence[int]) -> View:
        """A buffer that nobody else uses."""
        count = int(np.prod(shape))
        # of those that are free the one that has to grow least
        fits = sorted(self.free, key=lambda place: (max(0, count - self.sizes[place]), self.sizes[place]))
        if fits:
            self.free.remove(fits[0])
            self.sizes[fits[0]] = max(self.sizes[fits[0]], count)
        else:
            self.sizes.append(count)
        return View.solid(f"value{fits[0] if fits else len(self.sizes) - 1}", shape)

    def view(self, name: str) -> View:
        """Where a value lies; a tensor becomes a constant."""
        if name not in self.views:
            value = self.tensors[name]
            if value.dtype.kind == "i" and np.abs(value).max(initial=0) > _WHOLE:
                raise UserError(f"{name} with whole numbers above 2^24", "those that a float holds, for an export to C")
            self.views[name] = View.solid(self.constant("float", value), value.shape)
        return self.views[name]

    def solid(self, name: str) -> str:
        """A pointer to a value whose numbers lie one after another."""
        view = self.view(name)
        if not view.is_solid:
            target = self.room(view.shape)
            self.body.append(assign(target, "{0}", view))
            view = self.views[name] = target
        return view.pointer

    def booleans(self, name: str) -> bool:
        """Whether a value is of booleans."""
        return bool(self.kinds[name] == np.bool_)

    def release(self, needed: set[str]) -> None:
        """Free the buffers of values that are no longer needed."""
        used = {self.views[name].place for name in needed if name in self.views}
        self.free = [place for place in range(len(self.sizes)) if f"value{place}" not in used]


def _folded(
    program: Program, tensors: dict[str, Array], values: dict[str, Array], shapes: Mapping[str, tuple[int, ...]]
) -> Program:
    """The program without what depends on tensors alone, which are tensors from now on: one sample is all there is."""
    nodes = []
    for node in program.nodes:
        varies = any(isinstance(size, Size) for size in (*shapes[node.output], node.attributes.get("stop")))
        if all(name in tensors for name in node.inputs) and not varies:
            tensors[node.output] = values[node.output]
        else:
            nodes.append(node)
    return Program(program.inputs, tuple(nodes), program.outputs)


def source(whole: Program, given: dict[str, Array], name: str) -> str:
    """The text of the C file."""
    for item in whole.inputs:
        if item.dtype == "float64":
            raise UserError(f"input {item.name} of {item.dtype}", "float32 or whole numbers, for an export to C")
    if whole.time is not None:
        shapes = fitted(whole, given, whole.usual)
        if shapes is not None and _writable(whole, shapes):
            try:
                return _source(_sized(whole), given, name, shapes)
            except TooFixed:
                pass
        whole = whole.at_length(whole.usual)
    return _source(whole, given, name)


def _writable(program: Program, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether every operation on values of any length is one that is written with their sizes alone."""
    timed = {name for name, shape in shapes.items() if any(isinstance(size, Size) for size in shape)}
    return all(node.op in _ANY_LENGTH or not timed & {*node.inputs, node.output} for node in program.nodes)


def _sized(program: Program) -> Program:
    """The program with sizes for the ends of slices."""

    def one(node: Node) -> Node:
        stop = node.attributes.get("stop")
        if not isinstance(stop, str):
            return node
        if "batch" in stop:
            raise TooFixed(f"a slice up to {stop}", "one up to a length")
        size = Size((0, dimension(stop, 1, 1)), program.usual)
        return Node(node.op, node.inputs, node.output, {**node.attributes, "stop": size})

    return Program(program.inputs, tuple(map(one, program.nodes)), program.outputs, program.time)


def _source(
    whole: Program, given: dict[str, Array], name: str, sizes: Mapping[str, tuple[int, ...]] | None = None
) -> str:
    tensors, values = dict(given), one_sample(whole, given)
    shapes = dict(sizes or {key: v.shape for key, v in values.items()})
    program = _folded(whole, tensors, values, shapes)
    writer = Writer(tensors, shapes, {key: v.dtype for key, v in values.items()})
    offset = 0
    for item in program.inputs:
        view = View.solid("input", shapes[item.name])
        writer.views[item.name] = View(view.place, view.shape, view.strides, offset)
        offset += math.prod(shapes[item.name])
    runs = list(chains(program, tensors))
    last = {name: at for at, run in enumerate(runs) for node, _ in run for name in node.inputs}
    last |= dict.fromkeys(program.outputs, len(runs))
    for at, run in enumerate(runs):
        _run(writer, run)
        writer.release({name for name, place in last.items() if place > at})
    outputs = 0
    for answer in program.outputs:
        count = math.prod(writer.shapes[answer])
        writer.body.append(assign(View("output", *_solid(writer.shapes[answer]), outputs), "{0}", writer.view(answer)))
        outputs += count
    stages, longest = ([], whole.usual) if sizes else (_whole(program, runs), 0)
    return file_text(name, offset, outputs, writer, stages=stages, longest=longest)


def _whole(program: Program, runs: list[list[tuple[Node, Stage | None]]]) -> list[Stage]:
    """The stages of a program that is one chain from its only input to its only output, or none."""
    stages = [stage for run in runs for _, stage in run if stage is not None]
    only = len(runs) == len(program.inputs) == len(program.outputs) == 1 and len(stages) == len(runs[0])
    first, last = (runs[0][0][0], runs[0][-1][0]) if only else (None, None)
    right = (
        only and first is not None and first.inputs[0] == program.inputs[0].name and len(program.inputs[0].shape) == 1
    )
    layered = (
        any(isinstance(stage, Layer) for stage in stages) and fit(stages, program.inputs[0].shape[0])
        if right
        else False
    )
    return stages if layered and last is not None and last.output == program.outputs[0] else []


def _solid(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return shape, View.solid("", shape).strides


def _run(writer: Writer, run: list[tuple[Node, Stage | None]]) -> None:
    """A chain of layers, or its nodes one by one."""
    stages, first = [stage for _, stage in run if stage is not None], run[0][0].inputs[:1]
    width = writer.shapes[first[0]][-1:] if first else ()
    if any(isinstance(stage, Layer) for stage in stages) and width and fit(stages, width[0]):
        writer.views[run[-1][0].output] = _chain(writer, first[0], run[-1][0].output, stages)
        return
    for node, stage in run:
        if isinstance(stage, Layer):
            writer.views[node.output] = _chain(writer, node.inputs[0], node.output, [stage])
        elif node.op in _OPERATIONS:
            writer.views[node.output] = _OPERATIONS[node.op](writer, node)
        else:
            raise UserError(f"operation {node.op}", "one that the export to C knows", "use the pack, or export to ONNX")


def _chain(writer: Writer, first: str, last: str, stages: list[Stage]) -> View:
    """Layers and what is between them, over every row of the last axis."""
    width, answer = writer.shapes[first][-1], writer.room(writer.shapes[last])
    rows, place = math.prod(writer.shapes[first][:-1]), writer.solid(first)
    outer, writer.body = writer.body, []
    place = place if rows == 1 else f"({place} + r * {width})"
    parts = pruned(joined(stages))
    for left, stage in zip(range(len(parts) - 1, -1, -1), parts):
        width = stage.width if isinstance(stage, Layer) else width
        whole = answer.place if rows == 1 else f"({answer.place} + r * {width})"
        target = writer.room((width,)).place if left else whole
        if isinstance(stage, Layer):
            writer.body += layer(stage, writer.constant, place, target)
        else:
            names = [
                writer.constant("float", np.ascontiguousarray(np.broadcast_to(part, width)))
                for part in (stage.centre, stage.factor, stage.shift)
            ]
            line = f"{target}[i] = ({place}[i] - {names[0]}[i]) * {names[1]}[i] + {names[2]}[i];"
            writer.body.append(f"for (int i = 0; i < {width}; i++) {line}")
        writer.body += [activation(kind, target, width) for kind in stage.activations]
        place = target
    looped = writer.body if rows == 1 else [f"for (int r = 0; r < {rows}; r++) {{", *writer.body, "}"]
    writer.body = outer + looped
    return answer
