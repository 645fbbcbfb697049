"""Whether a program computes every sample by itself, so that a batch may be predicted in parts.

Judged operation by operation and at the safe side: of each value it is known that samples lie one after the other on
axis 0, several places each perhaps, or that it is the same whatever the samples are; what is not known here is not
taken apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fewer.packs.operations import BINARY, REDUCE, UNARY
from fewer.packs.program import Node, Program
from fewer.packs.runtime.ops import Array
from fewer.packs.shapes.rules import Shape

__all__ = ["apart", "samples_at_once", "work"]

_NEAR = 1 << 20  # numbers of one value that stay in a cache from one step to the next

_EACH = {*UNARY.split(), "gelu", "leaky_relu", "elu", "clamp", "cast"}
_BESIDE = {*BINARY.split(), "where"}
_ALONG = {*REDUCE.split(), "var", "argmax", "argmin", "softmax", "log_softmax", "cumsum", "sort", "argsort", "slice",
          "select", "roll", "flip", "concat"}  # fmt: skip
_IMAGES = {"conv", "batch_norm", "group_norm", "max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool"}


def apart(program: Program, tensors: Mapping[str, Any], shapes: Mapping[str, Shape]) -> bool:
    """Whether all answers are, given the shape of every value for one sample."""
    if program.time is not None:
        return False
    found = {one.name for one in program.inputs}
    for node in program.nodes:
        moving = [name for name in node.inputs if name in found]
        if moving and _keeps(node, moving, shapes):
            found.add(node.output)
        elif moving or any(isinstance(size, str) for size in node.attributes.get("shape", ())):
            return False
    return found.issuperset(program.outputs)


def samples_at_once(values: Iterable[str], shapes: Mapping[str, Shape]) -> int:
    """How many samples make the largest of these values stay near the processor."""
    return max(1, _NEAR // max(math.prod(shapes[name]) for name in values))


def work(program: Program, tensors: Mapping[str, Array], shapes: Mapping[str, Shape]) -> float:
    """Numbers that are made for one sample, and multiplications by kept weights."""
    whole = 0.0
    for node in program.nodes:
        made = shapes[node.output]
        whole += math.prod(made)
        for name in node.inputs[1:]:
            if name in tensors and tensors[name].ndim > 1 and node.op in ("conv", "linear"):
                whole += np.count_nonzero(tensors[name]) * math.prod(made) / made[1 if node.op == "conv" else -1]
    return whole


def _keeps(node: Node, moving: Sequence[str], shapes: Mapping[str, Shape]) -> bool:
    """Whether samples stay one after the other on axis 0 of what a node makes."""
    rank, values = len(shapes[moving[0]]), node.attributes
    if len({(len(shapes[name]), shapes[name][:1]) for name in moving}) > 1:
        return False  # they would be repeated for each other
    others = [shapes[name] for name in node.inputs if name not in moving]
    beneath = all(len(shape) < rank or (len(shape) == rank and shape[0] == 1) for shape in others)
    first = node.inputs[:1] == tuple(moving)
    match node.op:
        case op if op in _EACH:
            return True
        case op if op in _BESIDE:
            return beneath
        case op if op in _ALONG:
            axes = values["axes"] if "axes" in values else [values.get("axis")]
            known = bool(axes) and None not in axes
            return not others and known and all(axis % rank for axis in axes)
        case op if op in _IMAGES:
            return first and rank > 2
        case "linear":
            return first and rank > 1
        case "matmul" | "attention":
            return rank > 2 and beneath
        case "layer_norm":
            return first and values["axes"] < rank
        case "reshape":
            return _led_by_samples(values["shape"])
        case "expand":
            return len(values["shape"]) == rank and _led_by_samples(values["shape"])
        case "permute":
            return bool(values["axes"][0] == 0)
        case "pad":
            return len(values["widths"]) < 2 * rank
        case "interpolate":
            return len(values["size"]) < rank - 1
        case "embedding":
            return node.inputs[1:] == tuple(moving)
        case "index_select":
            return node.inputs[1:] == tuple(moving) and rank == 1 and values["axis"] == 0
    return False


def _led_by_samples(shape: Sequence[Any]) -> bool:
    return bool(shape) and isinstance(shape[0], str) and all(isinstance(size, int) for size in shape[1:])
