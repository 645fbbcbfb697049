"""Shapes are worked out when a pack is opened: what does not fit, or asks for too much, is one error and no memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from fewer import zoo
from fewer.cli import main
from fewer.packs.file import container
from fewer.packs.pack import Pack, decode, load, open_bytes, write
from fewer.packs.program import OPERATIONS, Input, Node, PackError, Program
from fewer.packs.runtime.runtime import Network
from fewer.packs.runtime.steps import one_sample
from fewer.packs.shapes.demand import Allowance, shapes_of
from fewer.packs.shapes.layers import RULES
from tests.packs import fuzz_programs
from tests.packs.predictions import PREDICTIONS, traced

CONV = {
    "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "transposed": False, "output_padding": [0, 0],
}  # fmt: skip


def file_of(nodes: list[list[Any]], shape: list[int], settings: dict[str, Any] | None = None) -> bytes:
    """A pack without tensors, whose answer is the last node's."""
    program = {"inputs": [["x", shape, "float32"]], "nodes": nodes, "outputs": [nodes[-1][2]]}
    header = {"settings": settings or {}, "masks": [], "tensors": [], "networks": {"net": program}}
    return container.seal(header, [], numbers=0)


@contextmanager
def at_most(megabytes: int) -> Iterator[None]:
    """Fails where more memory is taken."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes << 20
    finally:
        tracemalloc.stop()


def test_every_operation_has_a_rule() -> None:
    assert set(RULES) == set(OPERATIONS)


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("name", PREDICTIONS)
def test_the_shapes_worked_out_are_those_of_the_values(name: str, samples: int) -> None:
    _, program, tensors = traced(name)
    sizes = {key: np.asarray(value).shape for key, value in tensors.items()}
    found = shapes_of(program, sizes, samples, Allowance())
    if samples == 1:
        assert found == {key: value.shape for key, value in one_sample(program, tensors).items()}
    x = np.zeros((samples, *PREDICTIONS[name][1]), np.float32)
    assert found[program.outputs[0]] == Network(program, tensors, compiled=False).predict(x).shape


@pytest.mark.parametrize("name", zoo.names())
def test_a_shipped_pack_takes_a_small_part_of_what_is_allowed(name: str) -> None:
    a_tenth = Allowance(Allowance().numbers // 10, Allowance().work // 10)
    pack = load(zoo.path(name), allowance=a_tenth)
    for network in pack.networks.values():
        values = one_sample(network.program, pack.tensors())
        sizes = {key: value.shape for key, value in pack.tensors().items()}
        found = shapes_of(network.program, sizes, 1, a_tenth)
        assert found == {key: value.shape for key, value in values.items()}


@pytest.mark.parametrize(
    ("changed", "shape"),
    [
        ("first.bias", (1, 24)), ("first.bias", (23,)), ("first.bias", ()), ("first.weight", (24, 63)),
        ("first.weight", (24, 64, 1)), ("second.weight", (24, 10)), ("mean", (63,)),
        ("conv.weight", (4, 1, 9)), ("conv.weight", (4, 2, 3, 3)), ("conv.bias", (4, 1)), ("conv.bias", (5,)),
    ],
)  # fmt: skip
def test_a_tensor_of_a_wrong_shape_is_refused_when_a_pack_is_opened(changed: str, shape: tuple[int, ...]) -> None:
    program = Program(
        (Input("x", (1, 8, 8)),),
        (
            Node("conv", ("x", "conv.weight", "conv.bias"), "a", CONV),
            Node("mean", ("a",), "b", {"axes": [1], "keep": False}),
            Node("reshape", ("b",), "c", {"shape": ["batch", 64]}),
            Node("sub", ("c", "mean"), "d"),
            Node("linear", ("d", "first.weight", "first.bias"), "e"),
            Node("relu", ("e",), "f"),
            Node("linear", ("f", "second.weight"), "g"),
        ),
        ("g",),
    )
    shapes = {
        "conv.weight": (4, 1, 3, 3), "conv.bias": (4,), "mean": (64,), "first.weight": (24, 64), "first.bias": (24,),
        "second.weight": (10, 24),
    }  # fmt: skip
    Pack({"net": program}, {name: np.ones(size, np.float32) for name, size in shapes.items()})
    shapes[changed] = shape
    with pytest.raises(PackError):
        Pack({"net": program}, {name: np.ones(size, np.float32) for name, size in shapes.items()})


def test_a_file_of_200_bytes_takes_no_more_than_it_may() -> None:
    doubled = [["concat", ["x" if i == 0 else f"v{i - 1}"] * 2, f"v{i}", {"axis": 1}] for i in range(60)]
    with at_most(4), pytest.raises(PackError, match="numbers at once"):
        decode(*open_bytes(file_of(doubled, [4])))
    # held by one name after another, none of them too large
    many = [["expand", ["x"], f"v{i}", {"shape": ["batch", 1 << 20]}] for i in range(600)]
    many.append(["concat", [node[2] for node in many], "y", {"axis": 0}])
    with at_most(4), pytest.raises(PackError, match="numbers at once"):
        decode(*open_bytes(file_of(many, [1])))


def test_an_adaptive_pool_of_many_places_is_quick_and_small() -> None:
    nodes = [["adaptive_avg_pool", ["x"], "y", {"size": [1 << 18]}]]
    pack = decode(*open_bytes(file_of(nodes, [1, 4])))
    with at_most(32):
        assert pack.predict(np.arange(4, dtype=np.float32)[None]).shape == (1, 1 << 18)
    nodes[0][3]["size"] = [1 << 28]
    with pytest.raises(PackError, match="numbers at once"):
        decode(*open_bytes(file_of(nodes, [1, 4])))


@pytest.mark.parametrize(
    "node",
    [
        ["conv", ["x", "x"], "y", {**CONV, "padding": [1 << 20, 1 << 20], "stride": [1 << 20, 1 << 20]}],
        ["max_pool", ["x"], "y", {"kernel": [4, 4], "stride": [1, 1], "padding": [3, 3], "dilation": [1 << 20] * 2,
                                  "ceil": True}],
        ["pad", ["x"], "y", {"widths": [1 << 40], "mode": "constant", "value": 0}],
        ["pad", ["x"], "y", {"widths": [1 << 20, 0], "mode": "reflect", "value": 0}],
        ["interpolate", ["x"], "y", {"size": [1 << 30, 1], "mode": "linear", "align_corners": False}],
        ["full", [], "y", {"shape": ["batch", "99999999*batch", 100], "value": 1, "dtype": "float32"}],
        ["index_select", ["x", "x"], "y", {"axis": 7}],
    ],
)  # fmt: skip
def test_an_operation_that_asks_for_too_much_is_refused_before_it_runs(node: list[Any]) -> None:
    with at_most(4), pytest.raises(PackError):
        decode(*open_bytes(file_of([node], [1, 8, 8])))


def test_a_batch_that_takes_too_much_is_refused_in_one_line() -> None:
    nodes = [["expand", ["x"], "y", {"shape": ["batch", 1 << 20]}], ["exp", ["y"], "z", {}]]
    pack = decode(*open_bytes(file_of(nodes, [1])), Allowance(batch_numbers=1 << 24))
    assert pack.predict(np.zeros((4, 1), np.float32)).shape == (4, 1 << 20)
    with at_most(4), pytest.raises(PackError, match="fewer samples"):
        pack.predict(np.zeros((9, 1), np.float32))
    squared = [["full", [], "y", {"shape": ["batch"] * 5, "value": 1, "dtype": "float32"}], ["exp", ["y"], "z", {}]]
    with at_most(4), pytest.raises(PackError, match="fewer samples"):
        decode(*open_bytes(file_of(squared, [1]))).predict(np.zeros((70, 1), np.float32))


def test_what_is_refused_opens_with_a_larger_allowance() -> None:
    data = file_of([["expand", ["x"], "y", {"shape": ["batch", 1000]}], ["exp", ["y"], "z", {}]], [1])
    for small in (Allowance(numbers=1000), Allowance(work=1000)):
        with pytest.raises(PackError, match="--trust"):
            decode(*open_bytes(data), small)
    pack = decode(*open_bytes(data), Allowance.unlimited())
    assert pack.predict(np.zeros((2, 1), np.float32)).sum() == 2000


def test_one_feature_that_a_constant_spreads_out_is_predicted_as_numpy_does() -> None:
    generator = np.random.default_rng(0)
    tensors = {
        "w": generator.standard_normal((1, 3)),
        "s": generator.standard_normal(5),
        "v": generator.standard_normal((2, 5)),
    }
    tensors = {name: value.astype(np.float32) for name, value in tensors.items()}
    nodes = (Node("linear", ("x", "w"), "a"), Node("sub", ("a", "s"), "b"), Node("linear", ("b", "v"), "c"))
    x = generator.standard_normal((7, 3)).astype(np.float32)
    expected = (x @ tensors["w"].T - tensors["s"]) @ tensors["v"].T
    found = Network(Program((Input("x", (3,)),), nodes, ("c",)), tensors).predict(x)
    assert np.abs(found - expected).max() < 1e-5


def test_half_a_character_in_a_header_is_refused() -> None:
    with pytest.raises(PackError, match="header"):
        open_bytes(file_of([["relu", ["x"], "y", {}]], [1], {"task": "\ud800"}))


def test_many_samples_are_multiplied_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from fewer.packs.runtime import layers as ops_layers

    generator = np.random.default_rng(0)
    x, weight = (generator.standard_normal(size).astype(np.float32) for size in ((5, 4, 9, 8), (6, 2, 3, 3)))
    options = {**CONV, "groups": 2}
    expected = ops_layers.conv(x, weight, **options)  # type: ignore[arg-type]
    for columns in (1, 100, 3000):
        monkeypatch.setattr(ops_layers, "COLUMNS", columns)
        assert np.abs(ops_layers.conv(x, weight, **options) - expected).max() < 1e-5  # type: ignore[arg-type]


def test_changed_programs_of_the_shipped_packs_are_refused_or_predict() -> None:
    outcomes = fuzz_programs.run(240, seed=3)
    assert outcomes["refused"] > 100 and outcomes["predicted"] > 20


def test_the_command_line_says_in_one_line_what_does_not_fit(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program((Input("x", (5,)),), (Node("linear", ("x", "w", "b"), "y"),), ("y",))
    write(tmp_path / "a.pack", program, {"w": np.ones((3, 5), np.float32), "b": np.ones((1, 3), np.float32)})
    assert main(["run", str(tmp_path / "a.pack"), "--info"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "bias of shape (3,)" in said
