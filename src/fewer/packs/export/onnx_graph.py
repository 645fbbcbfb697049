"""An ONNX graph in the making."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fewer.packs.program import Dimension, Node, Program
from fewer.packs.runtime.ops import Array

__all__ = ["Converter", "Graph", "renamed"]


class Graph:
    """Nodes and initializers of a model in the making."""

    def __init__(self, onnx: Any, program: Program, tensors: dict[str, Array], values: dict[str, Array]) -> None:
        self.onnx, self.program, self.tensors, self.values = onnx, program, tensors, values
        self.nodes: list[Any] = []
        self._used: dict[str, Array] = {}
        self._sizes: dict[str, str] = {}  # of samples and of their length, as tensors of one number

    def node(
        self, op: str, inputs: Sequence[str], *, output: str | Sequence[str] | None = None, **attributes: Any
    ) -> str:
        """Add a node and name its (last) value; a tensor among its inputs becomes an initializer."""
        for name in inputs:
            if name in self.tensors:
                self._used[name] = self.tensors[name]
        outputs = [output or f"made:{len(self.nodes)}"] if output is None or isinstance(output, str) else list(output)
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), outputs, **attributes))
        return outputs[-1]

    def dtype(self, name: str) -> np.dtype[Any]:
        """The element type of a value."""
        return (self.values[name] if name in self.values else self.tensors[name]).dtype

    def cast(self, name: str, dtype: Any) -> str:
        """A value in an element type."""
        if self.dtype(name) == np.dtype(dtype):
            return name
        return self.node("Cast", [name], to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def alike(self, names: Sequence[str]) -> list[str]:
        """Values in the element type that holds all of them, as numpy has it and ONNX does not."""
        common = np.result_type(*(self.dtype(name) for name in names))
        return [self.cast(name, common) for name in names]

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """A small initializer."""
        array = np.asarray(value, dtype=dtype)
        name = f"constant:{array.dtype}:{array.tolist()}"
        self.tensors[name] = array
        self._used[name] = array
        return name

    def shape(self, dimensions: Sequence[Dimension]) -> str:
        """A shape as a tensor, worked out from the first input where the number of samples is in it."""
        if all(isinstance(size, int) for size in dimensions):
            return self.constant(list(dimensions))
        return self.node("Concat", [self.size(size) for size in dimensions], axis=0)

    def size(self, dimension: Dimension) -> str:
        """A dimension as a tensor of one number."""
        if isinstance(dimension, int):
            return self.constant([dimension])
        words = dimension.split("*")
        times = int(words.pop(0)) if words[0].isdigit() else 1
        made = self._measured(words[0])
        for word in words[1:]:
            made = self.node("Mul", [made, self._measured(word)])
        return self.node("Mul", [made, self.constant([times])]) if times != 1 else made

    def _measured(self, word: str) -> str:
        """The number of samples, or their length, read off an input."""
        if word not in self._sizes:
            time = self.program.time
            name = self.program.inputs[0].name if word == "batch" or time is None else time.inputs[0]
            axis = 0 if word == "batch" else 1
            bounds = [self.constant([axis]), self.constant([axis + 1])]
            self._sizes[word] = self.node("Slice", [self.node("Shape", [name]), *bounds])
        return self._sizes[word]

    def rank(self, name: str) -> int:
        """How many axes a value has."""
        return self.values[name].ndim if name in self.values else self.tensors[name].ndim

    def initializers(self) -> list[Any]:
        """Every tensor that some node reads."""
        return [
            self.onnx.numpy_helper.from_array(np.ascontiguousarray(v).reshape(v.shape), n)
            for n, v in self._used.items()
        ]


Converter = Callable[[Graph, Node], object]


def renamed(op: str, **names: str) -> Converter:
    """The same operation in ONNX, its attributes under ONNX's names."""
    return lambda g, n: g.node(op, n.inputs, output=n.output, **{to: n.attributes[of] for of, to in names.items()})
