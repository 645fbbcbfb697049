"""Programs whose samples are computed each by itself: a batch in parts answers as a whole, and what mixes samples is
not taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fewer.packs.pack import load
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime.apart import apart, work
from fewer.packs.runtime.runtime import Network
from fewer.packs.shapes.demand import Allowance, shapes_of
from fewer.packs.trace.trace import trace
from fewer.zoo import path

TABLE = {"table": np.arange(12, dtype=np.float32).reshape(4, 3), "same": np.ones((1, 3), np.float32)}
SOFTMAX = {"axis": -1}


def judged(*nodes: Node, shape: tuple[int, ...] = (4, 3), **tensors: Any) -> bool:
    program = Program((Input("x", shape),), nodes, (nodes[-1].output,))
    tensors = {**TABLE, **tensors}
    sizes = {name: value.shape for name, value in tensors.items()}
    return apart(program, shapes_of(program, sizes, 1, Allowance.unlimited()))


@pytest.mark.parametrize(
    "node",
    [
        Node("mean", ("x",), "y", {"axes": [0], "keep": True}),
        Node("softmax", ("x",), "y", {"axis": -3}),
        Node("cumsum", ("x",), "y", {"axis": 0}),
        Node("permute", ("x",), "y", {"axes": [1, 0, 2]}),
        Node("flip", ("x",), "y", {"axes": [2, 0]}),
        Node("slice", ("x",), "y", {"axis": 0, "start": 0, "step": 1}),
        Node("reshape", ("x",), "y", {"shape": [4, "3*batch"]}),
        Node("reshape", ("x",), "y", {"shape": [12, "batch"]}),
        Node("layer_norm", ("x",), "y", {"axes": 3, "epsilon": 1e-5}),
        Node("argmax", ("x",), "y", {"keep": True}),
        Node("add", ("x", "batched"), "y"),
    ],
)
def test_what_mixes_samples_is_not_taken_apart(node: Node) -> None:
    assert not judged(node, batched=np.zeros((5, 1, 4, 3), np.float32))


def test_values_of_different_rank_or_number_are_not_taken_apart() -> None:
    row = Node("mean", ("x",), "row", {"axes": [1, 2], "keep": False})  # (batch,), beside (batch, 4, 3) of its own
    assert judged(row)
    assert not judged(row, Node("add", ("x", "row"), "y"))
    many = Node("reshape", ("x",), "many", {"shape": ["4*batch", 3]})
    assert judged(many) and not judged(
        many, Node("reshape", ("x",), "flat", {"shape": ["batch", 12]}),
        Node("slice", ("flat",), "short", {"axis": 1, "start": 0, "stop": 3, "step": 1}),
        Node("add", ("many", "short"), "y"),
    )  # fmt: skip


def test_work_is_what_is_made_and_a_product_for_every_kept_weight_at_every_place() -> None:
    kernel, matrix = np.ones((4, 3, 2, 2), np.float32), np.ones((5, 6), np.float32)
    kernel[0] = matrix[:, 0] = 0
    values = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1, "transposed": False}
    nodes = (
        Node("conv", ("x", "k"), "a", {**values, "output_padding": [0, 0]}),
        Node("reshape", ("a",), "b", {"shape": ["batch", 4, 6]}), Node("linear", ("b", "m"), "c"),
    )  # fmt: skip
    program, tensors = Program((Input("x", (3, 3, 4)),), nodes, ("c",)), {"k": kernel, "m": matrix}
    shapes = shapes_of(program, {name: value.shape for name, value in tensors.items()}, 1, Allowance.unlimited())
    assert shapes["a"] == (1, 4, 2, 3)
    assert work(program, tensors, shapes) == (24 + 36 * 6) + 24 + (20 + 25 * 4)


@pytest.mark.parametrize(
    "nodes",
    [
        (Node("mul", ("x", "same"), "y"),),
        (Node("relu", ("x",), "a"), Node("concat", ("a", "x"), "y", {"axis": 1})),
        (Node("linear", ("x", "table"), "a"), Node("softmax", ("a",), "y", SOFTMAX)),
        (Node("permute", ("x",), "a", {"axes": [0, 2, 1]}), Node("matmul", ("x", "a"), "y")),
        (Node("add", ("table", "same"), "c"), Node("linear", ("x", "c"), "y")),
    ],
)
def test_what_treats_each_sample_alike_is_taken_apart(nodes: tuple[Node, ...]) -> None:
    assert judged(*nodes)


class Mixed(nn.Module):
    """Numpy's steps between layers, values of several places for each sample, a product of pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.softmax(self.first(x), -1)
        y = (y.transpose(1, 2) @ y).reshape(-1, 8) + y.mean((1, 2), keepdim=True).expand(-1, 8, 8).reshape(-1, 8)
        return torch.sort(self.last(y).reshape(-1, 24), dim=1).values * 2


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_a_batch_in_parts_is_answered_as_a_whole(at_once: int, count: int) -> None:
    torch.manual_seed(0)
    program, tensors = trace(Mixed().eval(), {"x": torch.randn(2, 5, 6)})
    fast, plain = Network(program, tensors, threads=count), Network(program, tensors, compiled=False)
    assert fast._at_once > 100
    fast._at_once, fast._work = at_once, 1e9
    x = np.random.default_rng(0).standard_normal((10, 5, 6)).astype(np.float32)
    np.testing.assert_allclose(fast.predict(x), plain.predict(x), atol=1e-6)


def test_a_shipped_forecast_is_the_same_in_any_company() -> None:
    pack = load(path("nowcast-80"))
    (network,) = pack.networks.values()
    assert network._at_once == 1
    lot = np.random.default_rng(0)
    x = {one.name: lot.random((3, *one.shape)).astype(one.dtype) for one in network.inputs}
    whole = pack.predict(**x)
    for place in range(3):
        alone = pack.predict(**{name: value[place] for name, value in x.items()})
        np.testing.assert_allclose(alone, whole[place], atol=1e-6)
    plain = Network(network.program, network._tensors, compiled=False)
    np.testing.assert_allclose(plain.predict(**x), whole, atol=1e-5)
