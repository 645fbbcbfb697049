"""Programs without torch that go through every kernel for images, states and rows: what the sanitizers watch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fewer.packs.images import planes
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime import chain
from fewer.packs.runtime.runtime import Network

__all__ = ["convolved", "multiplied", "recurred", "refused", "resized", "separated"]

Generator = np.random.Generator


def _weights(generator: Generator, *shape: int, density: float = 1.0) -> Any:
    return (generator.normal(size=shape) * (generator.random(shape) < density)).astype(np.float32)


def _agree(program: Program, tensors: dict[str, Any], generator: Generator, samples: int) -> None:
    x = generator.normal(size=(samples, *program.inputs[0].shape)).astype(np.float32)
    fast, plain = Network(program, tensors, threads=2), Network(program, tensors, compiled=False)
    found, wanted = np.asarray(fast.predict(x)), np.asarray(plain.predict(x))
    assert found.shape == wanted.shape and np.allclose(found, wanted, atol=1e-4, rtol=1e-4)
    fast.predict(np.full_like(x, np.nan))


def convolved(generator: Generator) -> None:
    """Strides, groups, paddings, pools and means on odd sizes, sparse and dense."""
    for stride, groups, density, size in itertools.product((1, 2), (1, 4), (0.1, 1.0), (5, 18)):
        tensors = {
            "w": _weights(generator, 8, 4 // groups, 3, 3, density=density),
            "v": _weights(generator, 6, 8, 1, 1, density=density),
        }
        options = {"dilation": [1, 1], "transposed": False, "output_padding": [0, 0]}
        nodes = (
            Node("conv", ("x", "w"), "a", {**options, "stride": [stride] * 2, "padding": [1, 1], "groups": groups}),
            Node("relu", ("a",), "b"),
            Node("conv", ("b", "v"), "c", {**options, "stride": [1, 1], "padding": [0, 0], "groups": 1}),
            Node("tanh", ("c",), "d"),
            Node("max_pool", ("d",), "e", {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1],
                                           "ceil": False}),
            Node("mean", ("e",), "y", {"axes": [2, 3], "keep": True}),
        )  # fmt: skip
        for samples in (1, 2, 11):
            _agree(Program((Input("x", (4, size, size + 1)),), nodes, ("y", "d")[:1]), tensors, generator, samples)


def separated(generator: Generator) -> None:
    """A kernel for each channel with a stride, then products of more weights than a panel holds, dense and kept."""
    for width, samples, density in itertools.product((1, 3, 7, 17, 33), (1, 3), (0.4, 1.0)):
        outputs = 9 if density == 1 else 50
        tensors = {"w": _weights(generator, 30, 1, 3, 3), "v": _weights(generator, outputs, 30, 3, 3, density=density)}
        options = {"dilation": [1, 1], "transposed": False, "output_padding": [0, 0], "padding": [1, 1]}
        nodes = (
            Node("conv", ("x", "w"), "a", {**options, "stride": [1, 2], "groups": 30}),
            Node("sigmoid", ("a",), "b"),
            Node("conv", ("b", "v"), "c", {**options, "stride": [1, 1], "groups": 1}),
            Node("relu", ("c",), "y"),
        )
        _agree(Program((Input("x", (30, 2, width)),), nodes, ("y",)), tensors, generator, samples)


def resized(generator: Generator) -> None:
    """Pools that reach over the edge, and sizes that are not multiples, of images in three dimensions."""
    for stride, size, mode in itertools.product((1, 2, 3), (1, 4, 19), ("linear", "nearest")):
        pool = {"kernel": [1, 3, 3], "stride": [1, stride, stride], "padding": [0, 1, 1], "ceil": False}
        nodes = (
            Node("max_pool", ("x",), "a", {**pool, "dilation": [1, 1, 1]}),
            Node("avg_pool", ("a",), "b", {**pool, "count_padding": False}),
            Node("interpolate", ("b",), "c", {"size": [3, 17, size + 2], "mode": mode, "align_corners": False}),
            Node("sigmoid", ("c",), "y"),
        )
        for samples in (1, 3):
            _agree(Program((Input("x", (2, 2, 5, size)),), nodes, ("y",)), {}, generator, samples)


def multiplied(generator: Generator) -> None:
    """Products of which either side is mostly zeros, or neither."""
    compiled = chain.kernels()
    assert compiled is not None
    for rows, inner, columns, left, right in itertools.product((1, 40), (17, 64), (3, 70), (0.0, 0.03, 1), (0.03, 1)):
        a = _weights(generator, 2, rows, inner, density=left)
        b = _weights(generator, 2, inner, columns, density=right)
        found = compiled.product(a, b)
        assert found is None or np.allclose(found, a @ b, atol=1e-4)
        assert left > 0 or columns < 16 or found is not None
    assert compiled.product(a, b[0]) is None and compiled.product(a, b[:, :3]) is None


def recurred(generator: Generator) -> None:
    """States of all three kinds, both ways, then a norm and shares of the last axis."""
    for op, reverse, density in itertools.product(("rnn", "gru", "lstm"), (False, True), (0.1, 1.0)):
        gates = {"rnn": 1, "gru": 3, "lstm": 4}[op]
        options: dict[str, Any] = {"reverse": reverse}
        options |= {"rnn": {"activation": "relu"}, "lstm": {"answer": "states"}}.get(op, {})
        tensors = {
            "w": _weights(generator, gates * 21, 5, density=density),
            "v": _weights(generator, gates * 21, 21, density=density) / 9,
            "b": _weights(generator, gates * 21), "c": _weights(generator, gates * 21),
            "scale": _weights(generator, 21), "shift": _weights(generator, 21),
        }  # fmt: skip
        nodes = (
            Node("permute", ("x",), "t", {"axes": [1, 0, 2]}),
            Node(op, ("t", "w", "v", "b", "c"), "h", options),
            Node("permute", ("h",), "s", {"axes": [1, 0, 2]}),
            Node("layer_norm", ("s", "scale", "shift"), "n", {"axes": 1, "epsilon": 1e-5}),
            Node("softmax", ("n",), "y", {"axis": -1}),
        )
        for samples in (1, 5, 70):
            _agree(Program((Input("x", (3, 5)),), nodes, ("y",)), tensors, generator, samples)


def refused() -> None:
    """Steps that would leave their buffers."""
    compiled = planes.kernels()
    assert compiled is not None
    kept = np.array([0, 1], np.uint32), np.array([9], np.uint32), np.ones(1, np.float32), np.zeros(1, np.float32)
    sizes = (1, 8, 8, 0, 0, 0, 0, 8)
    for wrong in ((0, 0, -1, 0, (0, 0.0, 0.0, 0.0), (*sizes, *kept, np.zeros((0, 2), np.uint32))), "nonsense"):
        try:
            compiled.Planes([wrong], (16,), (1,), (1,), 1)
            raise SystemExit("accepted")
        except (ValueError, TypeError):
            pass
