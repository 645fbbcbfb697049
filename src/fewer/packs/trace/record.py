"""Where a program is written down while torch is followed: constants, nodes and shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

import torch
from torch import Tensor

from fewer.core.errors import UserError
from fewer.packs.program import Dimension, Node

__all__ = ["Constant", "Converter", "Recorder", "Value", "binary", "element_type", "number"]


@dataclass(frozen=True)
class Constant:
    """A tensor that is known now: a parameter by its name, or what was computed from some."""

    value: Tensor
    name: str | None = None
    transpose_of: str | None = None


Value = str | Constant
_UNBOUNDED = 1 << 40  # torch bounds lengths by what an index holds


class Recorder:
    """Collects nodes and the tensors they use; the table of operations writes into it."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = {}
        self.shown: dict[str, Tensor] = {}  # values as torch has them: shapes and types without numbers
        self._names: dict[int, str] = {}
        self._time: set[Any] = set()  # symbols of torch's that stand for the length of sequences

    def name_time(self, size: Any) -> None:
        """Take a size of torch's for the length of sequences."""
        if isinstance(size, int) or not size.node.expr.is_Symbol:
            raise UserError(f"sequences that are always {size} long", "a length that varies")
        self._time.add(size.node.expr)

    def longest(self, ranges: Mapping[Any, Any]) -> int | None:
        """The longest sequence by torch's own account; None where there is no bound."""
        bounds = [int(ranges[symbol].upper) for symbol in self._time if symbol in ranges and _finite(ranges[symbol])]
        return min(bounds, default=None)

    def dimensions(self, shape: Sequence[Any]) -> list[Dimension]:
        """A shape in the words of a program."""
        return [self._dimension(size) for size in shape]

    def _dimension(self, size: Any) -> Dimension:
        if isinstance(size, int):
            return size
        expression = size.node.expr
        if expression.is_Integer:
            return int(expression)
        symbols = expression.free_symbols
        words = ["time" if symbol in self._time else "batch" for symbol in symbols]
        factor = expression / math.prod(symbols)
        if not factor.is_Integer or int(factor) < 1 or len(set(words)) != len(words):
            raise UserError(f"a size of {expression}", "a number, or a multiple of the number of samples")
        return "*".join([*([str(int(factor))] if factor != 1 else []), *sorted(words)])

    def tensor(self, constant: Constant) -> str:
        """The name under which a constant is stored, new if it has none."""
        name = constant.name or self._names.get(id(constant.value)) or f"constant{len(self._names)}"
        if constant.name is None:
            self._names[id(constant.value)] = name
        self.tensors[name] = constant.value
        return name

    def like(self, value: Any) -> Tensor:
        """A tensor of the shape and type that a value has."""
        return value.value if isinstance(value, Constant) else self.shown[value]

    def promoted(self, value: Any, shown: Any) -> Any:
        """The value in the element type of a floating result, to which torch takes whole numbers."""
        known = isinstance(value, Constant) or (isinstance(value, str) and value in self.shown)
        if not known or not shown.dtype.is_floating_point or self.like(value).dtype.is_floating_point:
            return value
        return self.emit("cast", value, dtype=element_type(shown))

    def emit(self, op: str, *inputs: Value, **attributes: Any) -> str:
        """Add a node and name its value; attributes that are None are left out."""
        names = tuple(value if isinstance(value, str) else self.tensor(value) for value in inputs)
        output = f"%{len(self.nodes)}"
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(Node(op, names, output, given))
        return output


def _finite(bounds: Any) -> bool:
    return bool(bounds.upper.is_Integer) and int(bounds.upper) < _UNBOUNDED


class Converter(Protocol):
    """What an operation of torch becomes, from its arguments by name and torch's own idea of the result."""

    def __call__(self, recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
        """The name of the value, or a tuple of names."""


def element_type(shown: Tensor) -> str:
    """The name of an element type; half precision is computed in whole."""
    halves = (torch.float16, torch.bfloat16)
    return "float32" if shown.dtype in halves else str(shown.dtype).removeprefix("torch.")


COMMUTES = ("add", "mul", "maximum", "minimum", "eq", "ne", "logical_and", "logical_or", "logical_xor")


def number(value: Any) -> float | int | None:
    """A number that stands for a tensor of no axes, which torch treats alike."""
    if isinstance(value, Constant) and value.value.ndim == 0:
        value = value.value.item()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        raise UserError("arithmetic with the number of samples", "a prediction of one sample that ignores the others")
    return value if isinstance(value, (int, float)) else None


def binary(recorder: Recorder, op: str, a: Any, b: Any) -> str:
    """An operation of two values, either of which may be a number; constants to the right where they may go."""
    left, right = number(a), number(b)
    if op in COMMUTES and (left is not None or (isinstance(a, Constant) and isinstance(b, str))):
        a, b, left, right = b, a, right, left
    if right is not None:
        return recorder.emit(op, a, right=right)
    if left is not None:
        return recorder.emit(op, b, left=left)
    return recorder.emit(op, a, b)
