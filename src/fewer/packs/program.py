"""A network's prediction as data: a short list of typed operations, which any runtime or exporter can read.

A program names its inputs, the tensors it uses and one list of nodes in the order of execution. The operations
are a closed list, each with the attributes it takes; a program that says anything else is refused when it is
read, so running a program can never do more than arithmetic. The number of samples is not fixed, and the length of
sequences need not be: a dimension is an integer or a multiple of either or both, written "batch", "49*batch", "time" or
"4*batch*time".
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fewer.core.errors import UserError
from fewer.packs.operations import BINARY, OPERATIONS, REDUCE, UNARY

__all__ = [
    "BINARY", "OPERATIONS", "REDUCE", "UNARY", "Dimension", "Input", "Node", "PackError", "Program", "Time",
    "dimension", "settled", "varies",
]  # fmt: skip

Dimension = int | str
LARGEST = 1 << 28  # numbers in one sample of an input
DTYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")


class PackError(UserError):
    """A pack, or the program inside it, that cannot be read or run."""


_VARYING = re.compile(r"(?:([1-9][0-9]{0,17})\*)?(batch|time|batch\*time)")


@functools.lru_cache(maxsize=4096)
def dimension(value: Dimension, batch: int, time: int = 0) -> int:
    """The number that a dimension stands for."""
    if isinstance(value, int):
        return value
    found = _VARYING.fullmatch(value)
    if found is None:
        raise PackError(f"dimension {value!r}", "an integer, 'batch' or 'time', or a multiple such as 'N*batch*time'")
    return int(found[1] or 1) * (batch if "batch" in found[2] else 1) * (time if "time" in found[2] else 1)


def settled(attributes: Mapping[str, Any], batch: int, time: int) -> dict[str, Any]:
    """Attributes for so many samples of such a length: what varies with either is a number."""
    found = dict(attributes)
    if "shape" in found:
        found["shape"] = tuple(dimension(size, batch, time) for size in found["shape"])
    if isinstance(found.get("stop"), str):
        found["stop"] = dimension(found["stop"], batch, time)
    return found


def _right(value: Any, kind: str) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62
    number = whole or isinstance(value, float)
    match kind.rstrip("?"):
        case "number":
            return number
        case "int":
            return whole
        case "bool":
            return isinstance(value, bool)
        case "text":
            return isinstance(value, str)
        case "ints" | "numbers" | "shape" as several if isinstance(value, (list, tuple)) and len(value) <= 64:
            part = {"ints": "int", "numbers": "number", "shape": "dimension"}[several]
            return all(_right(item, part) for item in value)
        case "dimension":
            return whole or (isinstance(value, str) and _VARYING.fullmatch(value) is not None)
    return False


@dataclass(frozen=True)
class Node:
    """One operation: its name, the values it reads, the value it makes, and its attributes."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        signature = OPERATIONS.get(self.op)
        if signature is None:
            raise PackError(f"operation {self.op!r}", "one of " + " ".join(sorted(OPERATIONS)))
        if not signature.fewest <= len(self.inputs) <= signature.most:
            raise PackError(f"{self.op} with {len(self.inputs)} inputs", f"{signature.fewest} to {signature.most}")
        for name, value in self.attributes.items():
            kind = signature.attributes.get(name)
            if kind is None or not _right(value, kind):
                raise PackError(f"attribute {name} = {value!r:.60} of {self.op}", kind or "no such attribute")
        needed = {name for name, kind in signature.attributes.items() if not kind.endswith("?")}
        if missing := needed - self.attributes.keys():
            raise PackError(f"{self.op} without {', '.join(sorted(missing))}", "every attribute of the operation")


def _at_length(node: Node, time: int) -> Node:
    """The node for sequences of this length alone; the number of samples still varies."""

    def one(size: Any) -> Any:
        if not isinstance(size, str) or "time" not in size:
            return size
        number = dimension(size, 1, time)
        return f"{number}*batch" if "batch" in size else number

    changed = dict(node.attributes)
    if "shape" in changed:
        changed["shape"] = [one(size) for size in changed["shape"]]
    if "stop" in changed:
        changed["stop"] = one(changed["stop"])
    return Node(node.op, node.inputs, node.output, changed)


def varies(node: Node, name: str | None = None) -> bool:
    """Whether an attribute of a node (any, if none is named) may depend on the number of samples or their length."""
    if name is None:
        return any(varies(node, each) for each in node.attributes)
    return name == "shape" or (name == "stop" and isinstance(node.attributes.get(name), str))


@dataclass(frozen=True)
class Input:
    """What a program is given: its shape without the samples, and its element type."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class Time:
    """That inputs may be of any length, the same for all of them, on their first axis behind the samples."""

    inputs: tuple[str, ...]
    most: int | None = None  # the longest; none: any


@dataclass(frozen=True)
class Program:
    """Inputs, nodes in the order of execution, and the names of the values that are the answer.

    Where lengths vary (`time`), shapes of inputs say the usual one.
    """

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    time: Time | None = None

    @property
    def usual(self) -> int:
        """The length that shapes of inputs speak of; 0 where lengths do not vary."""
        names = () if self.time is None else self.time.inputs
        return next((item.shape[0] for item in self.inputs if item.name in names), 0)

    def shape_of(self, item: Input, time: int) -> tuple[int, ...]:
        """Of one sample of an input, where sequences have this length."""
        varies = self.time is not None and item.name in self.time.inputs
        return (time, *item.shape[1:]) if varies else item.shape

    def at_length(self, time: int) -> Program:
        """The program of sequences of this length alone."""
        if self.time is None:
            return self
        inputs = tuple(Input(item.name, self.shape_of(item, time), item.dtype) for item in self.inputs)
        return Program(inputs, tuple(_at_length(node, time) for node in self.nodes), self.outputs)

    def check(self, tensors: set[str]) -> None:
        """Refuse a value that is read before it is made, or made twice."""
        known = set(tensors)
        for name in [item.name for item in self.inputs] + [node.output for node in self.nodes]:
            if name in known:
                raise PackError(f"value {name!r} is made twice", "every name once")
            known.add(name)
        known = tensors | {item.name for item in self.inputs}
        for node in self.nodes:
            for name in node.inputs:
                if name not in known:
                    raise PackError(f"{node.op} reads {name!r:.80}", "a value that was made before")
            known.add(node.output)
        for name in self.outputs:
            if name not in known:
                raise PackError(f"the answer {name!r:.80} is never made", "a value of the program")

    def used(self) -> set[str]:
        """Every name that is read."""
        return {name for node in self.nodes for name in node.inputs} | set(self.outputs)

    def to_json(self) -> dict[str, Any]:
        """Plain lists, numbers and words."""
        found = {
            "inputs": [[item.name, list(item.shape), item.dtype] for item in self.inputs],
            "nodes": [[node.op, list(node.inputs), node.output, dict(node.attributes)] for node in self.nodes],
            "outputs": list(self.outputs),
        }
        return found if self.time is None else {**found, "time": [list(self.time.inputs), self.time.most]}

    @classmethod
    def from_json(cls, data: Any) -> Program:
        """Back from `to_json`; anything else is a PackError."""
        try:
            inputs = tuple(Input(name, tuple(shape), dtype) for name, shape, dtype in data["inputs"])
            nodes = tuple(Node(op, tuple(names), output, dict(rest)) for op, names, output, rest in data["nodes"])
            outputs = tuple(data["outputs"])
            time = Time(tuple(data["time"][0]), data["time"][1]) if "time" in data else None
        except PackError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise PackError("a program that is not one", "inputs, nodes and outputs") from error
        names = [item.name for item in inputs] + [node.output for node in nodes] + list(outputs)
        names += [name for node in nodes for name in node.inputs] + [item.dtype for item in inputs]
        if not all(isinstance(name, str) for name in names) or not inputs or not outputs:
            raise PackError("a program with names that are not words, or without inputs or outputs", "both")
        for item in inputs:
            sizes = _right(list(item.shape), "ints") and min(item.shape, default=0) >= 0
            if not sizes or math.prod(item.shape) > LARGEST or item.dtype not in DTYPES:
                raise PackError(f"input {item.name!r:.40} of {item.dtype:.20} {item.shape!r:.40}", "sizes and a type")
        _check_time(time, inputs, nodes)
        return cls(inputs, nodes, outputs, time)


def _check_time(time: Time | None, inputs: tuple[Input, ...], nodes: tuple[Node, ...]) -> None:
    """Lengths vary in inputs that have an axis for it, by one length, and in no node of a program without them."""
    if time is None:
        sizes = [size for node in nodes for size in (*node.attributes.get("shape", ()), node.attributes.get("stop"))]
        if any(isinstance(size, str) and "time" in size for size in sizes):
            raise PackError("a length that varies in a program whose inputs do not", "inputs of any length")
        return
    lengths = {item.shape[:1] for item in inputs if item.name in time.inputs}
    known = {item.name for item in inputs}
    fine = time.inputs and known.issuperset(time.inputs) and len(lengths) == 1 and () not in lengths
    most = time.most is None or (_right(time.most, "int") and time.most >= 1)
    if not fine or not most:
        raise PackError(f"lengths {time!r:.80}", "inputs of one length, and the longest")
