"""Shapes and indices in ONNX."""

from __future__ import annotations

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.export.onnx_graph import Converter, Graph, renamed
from fewer.packs.program import Dimension, Node

__all__ = ["SHAPES"]


def _shaped(op: str) -> Converter:
    return lambda g, n: g.node(op, [n.inputs[0], g.shape(n.attributes["shape"])], output=n.output)


def _full(g: Graph, n: Node) -> object:
    value = g.onnx.numpy_helper.from_array(np.full(1, n.attributes["value"], dtype=n.attributes["dtype"]))
    return g.node("ConstantOfShape", [g.shape(n.attributes["shape"])], output=n.output, value=value)


def _part(
    g: Graph, name: str, axis: int, start: int, stop: Dimension | None, step: int, output: str | None = None
) -> str:
    end = stop if stop is not None else (2**62 if step > 0 else -(2**62))
    bounds = [g.size(value) for value in (start, end, axis, step)]
    return g.node("Slice", [name, *bounds], output=output)


def _put_slice(g: Graph, n: Node) -> object:
    a, (whole, part) = n.attributes, n.inputs
    start, stop, _ = slice(a["start"], a.get("stop")).indices(g.values[whole].shape[a["axis"]])
    if a["step"] != 1 or a["axis"] == 0:
        raise UserError("writing into every other place, or into samples", "a block, for an export to ONNX")
    before, after = _part(g, whole, a["axis"], 0, start, 1), _part(g, whole, a["axis"], stop, None, 1)
    return g.node("Concat", [before, part, after], output=n.output, axis=a["axis"])


def _roll(g: Graph, n: Node) -> object:
    name = n.inputs[0]
    for shift, axis in zip(n.attributes["shifts"], n.attributes["axes"]):
        size = g.values[n.inputs[0]].shape[axis]
        if size and shift % size:
            cut = size - shift % size
            name = g.node("Concat", [_part(g, name, axis, cut, None, 1), _part(g, name, axis, 0, cut, 1)], axis=axis)
    return g.node("Identity", [name], output=n.output)


def _flip(g: Graph, n: Node) -> object:
    name = n.inputs[0]
    for axis in n.attributes["axes"]:
        name = _part(g, name, axis, -1, None, -1)
    return g.node("Identity", [name], output=n.output)


def _pad(g: Graph, n: Node) -> object:
    a, rank, count = n.attributes, g.rank(n.inputs[0]), len(n.attributes["widths"]) // 2
    before, after = a["widths"][::2][::-1], a["widths"][1::2][::-1]
    readers = [other.op for other in g.program.nodes if n.output in other.inputs]
    # onnxruntime moves a Pad into the pool that reads it, where zeros become -infinity and a padding as wide as the
    # window is refused; of a Pad that names its axes it keeps off, and into a Conv it may move
    axes = [] if set(readers) == {"conv"} else list(range(rank - count, rank))
    rest = [] if axes else [0] * (rank - count)
    parts = [g.constant([*rest, *before, *rest, *after]), g.constant(a["value"], g.values[n.inputs[0]].dtype)]
    return g.node("Pad", [n.inputs[0], *parts, *([g.constant(axes)] if axes else [])], output=n.output, mode=a["mode"])


def _wide_index(g: Graph, names: tuple[str, ...]) -> str:
    """Indices of one shape side by side on a last axis."""
    zero = g.constant(0)
    wide = []
    for name in names:
        for other in names:
            if other != name:
                name = g.node("Add", [name, g.node("Mul", [other, zero])])
        wide.append(g.node("Unsqueeze", [name, g.constant([-1])]))
    return g.node("Concat", wide, axis=-1)


def _turned(g: Graph, name: str, order: list[int]) -> str:
    return name if order == sorted(order) else g.node("Transpose", [name], perm=order)


def _index_axes(g: Graph, n: Node, indices: tuple[str, ...]) -> tuple[str, list[int], list[int]]:
    """The value with the indexed axes first, their order, and how the answer's axes are turned back."""
    rank = g.rank(n.inputs[0])
    axes = [axis % rank for axis in n.attributes["axes"]]
    order = axes + [axis for axis in range(rank) if axis not in axes]
    wide = max(g.rank(name) for name in indices)
    before = min(axes) if max(axes) - min(axes) < len(axes) else 0
    back = [*range(wide, wide + before), *range(wide), *range(wide + before, wide + rank - len(axes))]
    return _turned(g, n.inputs[0], order), order, back


def _index(g: Graph, n: Node) -> object:
    if len(n.inputs) == 2:
        return g.node("Gather", n.inputs, output=n.output, axis=n.attributes["axes"][0])
    value, _, back = _index_axes(g, n, n.inputs[1:])
    found = g.node("GatherND", [value, _wide_index(g, n.inputs[1:])])
    return g.node("Transpose", [found], output=n.output, perm=back)


def _index_put(g: Graph, n: Node) -> object:
    indices = n.inputs[2:]
    value, order, back = _index_axes(g, n, indices)
    places = _wide_index(g, indices)
    there = g.node("Transpose", [g.node("GatherND", [value, places])], perm=back)
    given = g.node("Expand", [g.cast(n.inputs[1], g.dtype(n.output)), g.node("Shape", [there])])
    given = _turned(g, given, list(np.argsort(back)))
    made = g.node("ScatterND", [value, places, given], reduction="add" if n.attributes["add"] else "none")
    return g.node("Transpose", [made], output=n.output, perm=[int(axis) for axis in np.argsort(order)])


def _arange(g: Graph, n: Node) -> object:
    a = n.attributes
    count = g.node("Squeeze", [g.shape(a["shape"])])
    kind = g.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(a["dtype"]))
    places = g.node("Cast", [g.node("Range", [g.constant(0), count, g.constant(1)])], to=kind)
    scaled = g.node("Mul", [places, g.constant(a["step"], a["dtype"])])
    return g.node("Add", [scaled, g.constant(a["start"], a["dtype"])], output=n.output)


def _slice(g: Graph, n: Node) -> object:
    a = n.attributes
    return _part(g, n.inputs[0], a["axis"], a["start"], a.get("stop"), a["step"], n.output)


def _select(g: Graph, n: Node) -> object:
    return g.node(
        "Gather", [n.inputs[0], g.constant(n.attributes["index"])], output=n.output, axis=n.attributes["axis"]
    )


def _scatter(g: Graph, n: Node) -> object:
    mode = {"set": "none", "add": "add", "prod": "mul", "amax": "max", "amin": "min"}[n.attributes.get("mode", "add")]
    return g.node("ScatterElements", n.inputs, output=n.output, axis=n.attributes["axis"], reduction=mode)


SHAPES: dict[str, Converter] = {
    "reshape": _shaped("Reshape"), "expand": _shaped("Expand"), "full": _full, "roll": _roll, "flip": _flip,
    "permute": renamed("Transpose", axes="perm"),
    "concat": lambda g, n: g.node("Concat", g.alike(n.inputs), output=n.output, axis=n.attributes["axis"]),
    "slice": _slice,
    "select": _select, "put_slice": _put_slice,
    "pad": _pad, "gather": renamed("GatherElements", axis="axis"), "index": _index,
    "index_select": renamed("Gather", axis="axis"), "index_put": _index_put, "arange": _arange,
    "embedding": lambda g, n: g.node("Gather", n.inputs, output=n.output, axis=0),
    **dict.fromkeys(("scatter", "scatter_add"), _scatter),
}  # fmt: skip
