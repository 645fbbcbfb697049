"""Operations that small networks are full of, with their attributes bound beforehand: on little data a call through
several functions costs more than the arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fewer.packs.program import Node, varies
from fewer.packs.runtime.ops import Array

__all__ = ["quick"]

_FUNCTIONS: dict[str, np.ufunc] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip


def quick(node: Node) -> Callable[..., Array] | None:
    """The node as one call, with the answer that its operation has, or None where there is no shorter way."""
    values = node.attributes
    match node.op:
        case "slice" if values["axis"] >= 0 and not varies(node, "stop"):
            place = slice(values["start"], values.get("stop"), values["step"])
            return operator.itemgetter((slice(None),) * values["axis"] + (place,))
        case "concat":
            axis = values["axis"]
            return lambda *inputs: np.concatenate(inputs, axis)
        case "index_select":
            axis = values["axis"]
            return lambda x, index: x.take(index, axis)  # type: ignore[no-any-return]
    return _arithmetic(node)


def _arithmetic(node: Node) -> Callable[..., Any] | None:
    left, right = node.attributes.get("left"), node.attributes.get("right")
    # whole numbers are divided as single precision, numpy's own choice is double
    function = np.true_divide if node.op == "div" and isinstance(right, float) else _FUNCTIONS.get(node.op)
    if function is None:
        return None
    if len(node.inputs) == 2:
        return function
    return partial(function, left) if left is not None else lambda x: function(x, right)
