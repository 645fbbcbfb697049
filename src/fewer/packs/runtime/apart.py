"""Whether a program computes every sample by itself, so that a batch may be predicted in parts.

Judged operation by operation and at the safe side: of each value it is known that samples lie one after the other on
axis 0, several places each perhaps, or that it is the same whatever the samples are; what is not known here is not
taken apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewer.packs.operations import BINARY, REDUCE, UNARY
from fewer.packs.program import Node, Program
from fewer.packs.runtime.ops import Array
from fewer.packs.shapes.rules import Shape

__all__ = ["apart", "samples_at_once", "work"]

_NEAR = 1 << 20  # numbers of one value that stay in a cache from one step to the next

_ALONG = "var argmax argmin softmax log_softmax cumsum sort argsort slice select roll flip concat"
_IMAGES = "conv batch_norm group_norm max_pool avg_pool adaptive_avg_pool adaptive_max_pool"


def apart(program: Program, shapes: Mapping[str, Shape]) -> bool:
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
    rank, rule = len(shapes[moving[0]]), _RULES.get(node.op)
    others = [shapes[name] for name in node.inputs if name not in moving]
    if len({(len(shapes[name]), shapes[name][:1]) for name in moving}) > 1 or rule is None:
        return False  # one would be repeated for another
    beneath = all(len(shape) < rank or (len(shape) == rank and shape[0] == 1) for shape in others)
    first, second = node.inputs[:1] == tuple(moving), node.inputs[1:] == tuple(moving)
    return bool(rule(node.attributes, _Given(rank, first, second, beneath, not others)))


@dataclass(frozen=True)
class _Given:
    """What samples are given to a node: their rank, and how constants lie beside them."""

    rank: int
    first: bool  # they are the first input alone
    second: bool  # the second alone, of two
    beneath: bool  # constants are repeated for every sample
    alone: bool  # there are no constants


def _along(values: Mapping[str, Any], given: _Given) -> bool:
    """Other axes than the samples'."""
    axes = values["axes"] if "axes" in values else [values.get("axis")]
    return given.alone and bool(axes) and all(axis is not None and axis % given.rank for axis in axes)


def _led_by_samples(shape: Sequence[Any]) -> bool:
    return bool(shape) and isinstance(shape[0], str) and all(isinstance(size, int) for size in shape[1:])


_RULES: dict[str, Callable[[Mapping[str, Any], _Given], bool]] = {
    **dict.fromkeys([*UNARY.split(), "gelu", "leaky_relu", "elu", "clamp", "cast"], lambda values, given: True),
    **dict.fromkeys([*BINARY.split(), "where"], lambda values, given: given.beneath),
    **dict.fromkeys([*REDUCE.split(), *_ALONG.split()], _along),
    **dict.fromkeys(_IMAGES.split(), lambda values, given: given.first and given.rank > 2),
    **dict.fromkeys(["matmul", "attention"], lambda values, given: given.rank > 2 and given.beneath),
    "linear": lambda values, given: given.first and given.rank > 1,
    "layer_norm": lambda values, given: given.first and values["axes"] < given.rank,
    "reshape": lambda values, given: _led_by_samples(values["shape"]),
    "expand": lambda values, given: len(values["shape"]) == given.rank and _led_by_samples(values["shape"]),
    "permute": lambda values, given: values["axes"][0] == 0,
    "pad": lambda values, given: len(values["widths"]) < 2 * given.rank,
    "interpolate": lambda values, given: len(values["size"]) < given.rank - 1,
    "embedding": lambda values, given: given.second,
    "index_select": lambda values, given: given.second and given.rank == 1 and values["axis"] == 0,
}
