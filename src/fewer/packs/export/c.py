"""A pack as one C99 file without dependencies, for a microcontroller or a real-time loop.

    export(load("policy.pack"), "policy.c", "policy")

gives `void policy(const float *input, float *output)` for one sample: inputs one after another, then outputs. Kept
weights are constants by columns, so that columns of zero inputs are skipped; units that nothing feeds or nobody
reads are gone. Layers, convolutions in one and two dimensions, pools, sums, means and extremes, activations,
normalisers, `cat` and softmax can be exported; anything else is refused by name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically
from fewer.packs.export import c_code as code
from fewer.packs.program import Node
from fewer.packs.runtime.chain import Layer, Stage, joined, pruned
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.runtime import Network, Pack, chains, one_sample

__all__ = ["export"]

_KEYWORDS = (
    " auto break case char const continue default do double else enum extern float for goto if inline int long main "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
)
_ON_STACK = 16_384  # floats of scratch above which it is static, and the function not reentrant


def export(pack: Pack, path: str | os.PathLike[str], name: str, *, network: str | None = None) -> None:
    """Write the C file; `network` is the first one of the pack unless named."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or f" {name} " in _KEYWORDS:
        raise UserError(f"name {name!r}", "a C identifier that is no keyword")
    if network is not None and network not in pack.networks:
        raise UserError(f"network {network!r}", f"one of {', '.join(pack.networks)}")
    chosen = pack.networks[network] if network is not None else next(iter(pack.networks.values()))
    write_atomically(path, source(chosen, pack.tensors(), name).encode())


@dataclass
class Writer:
    """Lines of constants and of the function, and where each value lies."""

    tensors: Mapping[str, Array]
    shapes: dict[str, tuple[int, ...]]
    constants: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)

    def constant(self, kind: str, values: Array) -> str:
        """A constant array, and its name; equal ones are stored once."""
        line = code.array(kind, values)
        if line not in self.constants:
            self.constants.append(line)
        return f"constant{self.constants.index(line)}"

    def room(self, count: int) -> str:
        """A buffer of its own for a value."""
        self.sizes.append(count)
        return f"value{len(self.sizes) - 1}"

    def value(self, name: str) -> str:
        """Where a value lies; a tensor becomes a constant."""
        if name not in self.places:
            self.places[name] = self.constant("float", self.tensors[name])
        return self.places[name]

    def count(self, name: str) -> int:
        """How many numbers a value has."""
        return int(np.prod(self.shapes[name]))


def source(network: Network, tensors: Mapping[str, Array], name: str) -> str:
    """The text of the C file."""
    program = network.program
    for item in program.inputs:
        if item.dtype != "float32":
            raise UserError(f"input {item.name} of {item.dtype}", "float32 for an export to C")
    writer = Writer(tensors, {value: array.shape for value, array in one_sample(program, tensors).items()})
    offset = 0
    for item in program.inputs:
        writer.places[item.name] = f"(input + {offset})"
        offset += int(np.prod(item.shape))
    for run in chains(program, tensors):
        stages = [stage for _, stage in run if stage is not None]
        if any(isinstance(stage, Layer) for stage in stages):
            _chain(writer, run[0][0].inputs[0], run[-1][0].output, stages)
        else:
            for node, _ in run:
                _node(writer, node)
    outputs = 0
    for answer in program.outputs:
        count = writer.count(answer)
        writer.body.append(f"memcpy(output + {outputs}, {writer.value(answer)}, {count} * sizeof(float));")
        outputs += count
    return code.file(name, offset, outputs, writer.constants, writer.body, list(_scratch(writer.sizes)))


def _scratch(sizes: list[int]) -> Iterator[str]:
    static = "static " if sum(sizes) > _ON_STACK else ""
    for place, size in enumerate(sizes):
        yield f"{static}float value{place}[{max(1, size)}];"


def _chain(writer: Writer, first: str, last: str, stages: list[Stage]) -> None:
    """Layers and what is between them; over the last axis of values of higher rank, row by row."""
    width = next(stage.weight.shape[1] for stage in stages if isinstance(stage, Layer))
    rows = writer.count(first) // max(1, width)
    if rows != 1 or writer.shapes[first][-1] != width:
        raise UserError(f"a layer over {rows} rows of one sample", "one row, for an export to C")
    place = writer.value(first)
    for stage in pruned(joined(stages)):
        if isinstance(stage, Layer):
            outputs = stage.width
            target = writer.room(outputs)
            writer.body += code.layer(stage, writer.constant, place, target)
            place, width = target, outputs
        else:
            target = writer.room(width)
            parts = [np.broadcast_to(part, width) for part in (stage.centre, stage.factor, stage.shift)]
            names = [writer.constant("float", np.ascontiguousarray(part)) for part in parts]
            line = f"{target}[i] = ({place}[i] - {names[0]}[i]) * {names[1]}[i] + {names[2]}[i];"
            writer.body.append(code.loop(width, line))
            place = target
        for activation in stage.activations:
            writer.body.append(code.activation(activation, place, width))
    writer.places[last] = place


def _node(writer: Writer, node: Node) -> None:
    """One node that is no layer of a chain."""
    count = writer.count(node.output)
    if node.op == "reshape":
        writer.places[node.output] = writer.value(node.inputs[0])
        return
    target = writer.places[node.output] = writer.room(count)
    if node.op in code.BINARY:
        written = code.BINARY[node.op].format(*_sides(writer, node))
        writer.body.append(code.loop(count, f"{target}[i] = {written};"))
        return
    if node.op == "full":
        writer.body.append(code.loop(count, f"{target}[i] = {code.number(node.attributes['value'])};"))
        return
    if node.op == "concat":
        places = [writer.value(name) for name in node.inputs]
        writer.body += code.concat(
            places, [writer.shapes[name] for name in node.inputs], node.attributes["axis"], target
        )
        return
    writer.body += _of_one(writer, node, writer.value(node.inputs[0]), target)


def _of_one(writer: Writer, node: Node, place: str, target: str) -> list[str]:
    """What is computed from one value, and from constants."""
    shape = writer.shapes[node.inputs[0]]
    if node.op == "conv" and not node.attributes["transposed"] and len(shape) in (3, 4):
        bias = writer.tensors[node.inputs[2]] if len(node.inputs) > 2 else None
        return code.convolution(node, writer.tensors[node.inputs[1]], bias, writer, (place, target))
    if node.op in ("max_pool", "avg_pool") and len(shape) in (3, 4):
        return code.pool(node, shape, writer.shapes[node.output], place, target)
    if node.op == "batch_norm":
        return code.batch_norm(node, writer, place, target)
    if (found := code.reduced(node, len(shape))) is not None:
        return code.reduction(found[0], shape, found[1], place, target)
    if node.op in ("softmax", "log_softmax") and node.attributes["axis"] in (-1, len(shape) - 1):
        return code.softmax(node.op, shape, place, target)
    stage = code.elementwise(node)
    if stage is None:
        raise UserError(f"operation {node.op}", "one that the export to C knows", "use the pack, or export to ONNX")
    count = writer.count(node.output)
    return [f"memcpy({target}, {place}, {count} * sizeof(float));", code.activation(stage, target, count)]


def _sides(writer: Writer, node: Node) -> list[str]:
    """What arithmetic is done with: values, and a number to the left or the right of them."""
    given = [node.attributes.get(name) for name in ("left", "right")]
    left, right = ([] if side is None else [code.number(side)] for side in given)
    return [*left, *(_operand(writer, name, node.output) for name in node.inputs), *right]


def _operand(writer: Writer, name: str, output: str) -> str:
    shape = writer.shapes[output]
    if name in writer.tensors:
        value = np.ascontiguousarray(np.broadcast_to(writer.tensors[name], shape), dtype=np.float32)
        return f"{writer.constant('float', value)}[i]"
    if writer.shapes[name] != shape:
        raise UserError(f"arithmetic of {writer.shapes[name]} with {shape}", "equal shapes, for an export to C")
    return f"{writer.value(name)}[i]"
