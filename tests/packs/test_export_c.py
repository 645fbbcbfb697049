"""The export to C: compiled with every warning an error, and checked against the runtime."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from fewer import zoo
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.packs.export.c import export, source
from fewer.packs.pack import load
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime.runtime import Pack
from fewer.packs.trace.trace import trace
from tests.packs.predictions import PREDICTIONS, traced
from tests.packs.test_runtime_chain import network
from tests.systems.control.synthetic import control

COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]


def compiled(pack: Pack, folder: Path, inputs: int, outputs: int):
    """The exported function as a Python one."""
    export(pack, folder / "net.c", "net")
    command = [COMPILER, *FLAGS, "-shared", "-fPIC", str(folder / "net.c"), "-o", str(folder / "net.so"), "-lm"]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(folder / "net.so")).net

    def call(x: np.ndarray) -> np.ndarray:
        flat, answer = np.ascontiguousarray(x, np.float32).reshape(-1), np.full(outputs, np.nan, np.float32)
        assert flat.size == inputs
        function(flat.ctypes.data_as(ctypes.c_void_p), answer.ctypes.data_as(ctypes.c_void_p))
        return answer

    return call


@pytest.mark.parametrize("density", [0.0, 0.05, 0.5, 1.0])
def test_an_actor_in_c_answers_as_the_runtime_does(tmp_path: Path, density: float) -> None:
    program, tensors = network([17, 60, 40, 6], density, ["relu", "elu", "tanh"], 0)
    pack = Pack({"actor": program}, tensors)
    function = compiled(pack, tmp_path, 17, 6)
    for x in np.random.default_rng(0).standard_normal((20, 17)).astype(np.float32):
        assert np.abs(function(x) - pack.predict(x)).max() < 1e-5


def test_every_activation_in_c_answers_as_the_runtime_does(tmp_path: Path) -> None:
    for number, name in enumerate(["leaky_relu", "sigmoid", "gelu", "clamp", "abs", "neg"]):
        program, tensors = network([5, 9, 4], 0.6, [name], number)
        pack = Pack({"net": program}, tensors)
        (tmp_path / name).mkdir()
        function = compiled(pack, tmp_path / name, 5, 4)
        for x in np.random.default_rng(0).standard_normal((5, 5)).astype(np.float32):
            assert np.abs(function(x) - pack.predict(x)).max() < 1e-5


@pytest.mark.parametrize("name", PREDICTIONS)
def test_every_prediction_in_c_answers_as_the_runtime_does_one_by_one_and_together(tmp_path: Path, name: str) -> None:
    _, program, tensors = traced(name)
    pack = Pack({"net": program}, tensors)
    x = np.random.default_rng(0).standard_normal((3, *PREDICTIONS[name][1])).astype(np.float32)
    expected = pack.predict(x)
    function = compiled(pack, tmp_path, x[0].size, expected[0].size)
    together = np.full(expected.shape, np.nan, np.float32)
    pointers = [value.ctypes.data_as(ctypes.c_void_p) for value in (x, together)]
    ctypes.CDLL(str(tmp_path / "net.so")).net_batch(*pointers, len(x))
    allowed = 1e-5 * (1 + np.abs(expected).max())
    assert np.abs(together - expected).max() < allowed
    for sample, answer in zip(x, together):
        assert function(sample).tobytes() == answer.tobytes()


@pytest.mark.parametrize("op", ["conv", "transposed", "max_pool", "avg_pool"])
def test_several_images_of_one_sample_in_c_answer_as_the_runtime_does(tmp_path: Path, op: str) -> None:
    sizes = {"stride": [2, 1], "padding": [1, 0]}
    conv = {**sizes, "dilation": [1, 1], "groups": 1, "output_padding": [0, 0]}
    pool = {**sizes, "kernel": [2, 2], "ceil": False}
    nodes = {
        "conv": Node("conv", ("a", "w"), "b", {**conv, "transposed": False}),
        "transposed": Node("conv", ("a", "t"), "b", {**conv, "transposed": True}),
        "max_pool": Node("max_pool", ("a",), "b", {**pool, "dilation": [1, 1]}),
        "avg_pool": Node("avg_pool", ("a",), "b", {**pool, "count_padding": True}),
    }  # fmt: skip
    fold = Node("reshape", ("x",), "a", {"shape": ["3*batch", 2, 5, 4]})
    lot = np.random.default_rng(0)
    shapes = {"w": (4, 2, 2, 3), "t": (2, 4, 2, 3)}
    tensors = {name: lot.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    pack = Pack({"net": Program((Input("x", (3, 2, 5, 4)),), (fold, nodes[op]), ("b",))}, tensors)
    x = lot.standard_normal((1, 3, 2, 5, 4)).astype(np.float32)
    expected = pack.predict(x).reshape(-1)
    assert np.abs(compiled(pack, tmp_path, x.size, expected.size)(x) - expected).max() < 1e-5


@pytest.mark.parametrize("name", zoo.names())
def test_every_shipped_pack_in_c_answers_as_the_pack_does(tmp_path: Path, name: str) -> None:
    pack = load(zoo.path(name))
    inputs, lot = next(iter(pack.networks.values())).inputs, np.random.default_rng(0)
    # phones name their master by a whole number; what is missing is a truth
    given = [lot.integers(0, 2, (1, *i.shape)) if i.dtype == "int64" else lot.random((1, *i.shape)) for i in inputs]
    arrays = [value.astype(item.dtype) for value, item in zip(given, inputs)]
    found = pack.predict(*arrays)
    expected = np.concatenate([np.ravel(part) for part in (found if isinstance(found, tuple) else (found,))])
    together = np.concatenate([value.astype(np.float32).ravel() for value in arrays])
    answer = compiled(pack, tmp_path, together.size, expected.size)(together)
    assert np.abs(answer - expected).max() < 1e-4 * (1 + np.abs(expected).max())


@pytest.mark.parametrize("algorithm", ["bcq", "iql", "td3bc"])
def test_a_policy_of_the_control_system_in_c_answers_as_the_runtime_does(tmp_path: Path, algorithm: str) -> None:
    task = control(algorithm)
    noise = Stream(torch.tensor(0), torch.tensor(0))
    example = task.inputs(task.data("train").take(torch.arange(2)))
    torch.manual_seed(0)
    program, tensors = trace(lambda nets, x: task.predict(nets, x, noise), [example], networks=fresh_modules(task, 0))
    pack = Pack({"policy": program}, tensors)
    expected = pack.predict(example.numpy())
    function = compiled(pack, tmp_path, example[0].numel(), expected[0].size)
    for x, answer in zip(example.numpy(), expected):
        assert np.abs(function(x) - answer.reshape(-1)).max() < 1e-5


def test_an_embedding_in_c_holds_kept_numbers_alone_and_never_reads_outside_its_table(tmp_path: Path) -> None:
    lot = np.random.default_rng(0)
    table = (lot.standard_normal((50, 8)) * (lot.random((50, 8)) < 0.1)).astype(np.float32)
    program = Program((Input("x", (3,), "int64"),), (Node("embedding", ("t", "x"), "y"),), ("y",))
    pack = Pack({"net": program}, {"t": table})
    function = compiled(pack, tmp_path, 3, 24)
    assert np.array_equal(function(np.array([0, 49, 7])).reshape(3, 8), table[[0, 49, 7]])
    assert np.array_equal(function(np.array([-5, 1e9, np.nan])).reshape(3, 8)[:2], table[[0, 49]])
    assert (tmp_path / "net.c").read_text().count("f,") + 1 < np.count_nonzero(table) + 5


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [1, 2, 3, -1])
def test_the_place_of_an_extreme_along_any_axis_in_c_is_the_runtimes(tmp_path: Path, op: str, axis: int) -> None:
    program = Program((Input("x", (3, 4, 5)),), (Node(op, ("x",), "y", {"axis": axis, "keep": False}),), ("y",))
    pack = Pack({"net": program}, {})
    x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
    wanted = pack.predict(x).reshape(-1)
    assert compiled(pack, tmp_path, 60, wanted.size)(x).tolist() == wanted.tolist()


@pytest.mark.parametrize("rest", [(), ("b",)])
def test_a_layer_whose_weights_are_worked_out_in_c_answers_as_the_runtime_does(
    tmp_path: Path, rest: tuple[str]
) -> None:
    lot = np.random.default_rng(0)
    nodes = (Node("mul", ("x", "s"), "a"), Node("linear", ("x", "a", *rest), "y"))  # by a matrix of its own
    program = Program((Input("x", (3,)),), nodes, ("y",))
    pack = Pack({"net": program}, {"s": lot.random((1, 3)).astype(np.float32), "b": np.ones(1, np.float32)})
    x = lot.standard_normal(3).astype(np.float32)
    assert np.abs(compiled(pack, tmp_path, 3, 1)(x) - pack.predict(x)).max() < 1e-6


def test_a_spread_window_that_hangs_over_the_edge_in_c_takes_what_is_inside(tmp_path: Path) -> None:
    window = {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [2, 2], "ceil": True}
    pack = Pack({"net": Program((Input("x", (1, 6, 6)),), (Node("max_pool", ("x",), "y", window),), ("y",))}, {})
    x = np.arange(36, dtype=np.float32).reshape(1, 6, 6)  # what lies behind a row is larger
    assert pack.predict(x).tolist() == [[[14, 16, 16], [26, 28, 28], [26, 28, 28]]]
    assert compiled(pack, tmp_path, 36, 9)(x).tolist() == [14, 16, 16, 26, 28, 28, 26, 28, 28]


@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin", "adaptive_avg_pool"])
@pytest.mark.parametrize("axes", [[-1], [2, 3], [1], [1, 2]])
def test_reductions_in_c_answer_as_the_runtime_does(tmp_path: Path, op: str, axes: list[int]) -> None:
    pool = op == "adaptive_avg_pool"
    attributes = {"size": [1, 1]} if pool else {"axes": axes, "keep": False}
    program = Program((Input("x", (3, 4, 5), "float32"),), (Node(op, ("x",), "y", attributes),), ("y",))
    pack = Pack({"net": program}, {})
    images = np.random.default_rng(0).standard_normal((4, 3, 4, 5)).astype(np.float32)
    wanted = [pack.predict(x).reshape(-1) for x in images]
    function = compiled(pack, tmp_path, 60, wanted[0].size)
    for x, answer in zip(images, wanted):
        assert np.abs(function(x) - answer).max() < 1e-5


def test_a_constant_in_c_answers_as_the_runtime_does(tmp_path: Path) -> None:
    nodes = (
        Node("full", (), "z", {"shape": ["batch", 2], "value": 0.25, "dtype": "float32"}),
        Node("concat", ("x", "z"), "a", {"axis": 1}), Node("linear", ("a", "w"), "b"), Node("tanh", ("b",), "c"),
    )  # fmt: skip
    tensors = {"w": np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)}
    pack = Pack({"net": Program((Input("x", (3,)),), nodes, ("c",))}, tensors)
    function = compiled(pack, tmp_path, 3, 3)
    for x in np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32):
        assert np.abs(function(x) - pack.predict(x)).max() < 1e-6


@pytest.mark.parametrize("name", ["int", "main", "1st", "a-b"])
def test_a_name_that_c_cannot_take_is_refused(tmp_path: Path, name: str) -> None:
    program, tensors = network([3, 2], 1.0, ["relu"], 0)
    with pytest.raises(UserError, match="identifier"):
        export(Pack({"net": program}, tensors), tmp_path / "x.c", name)
    assert not (tmp_path / "x.c").exists()


def test_several_inputs_follow_one_another(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    nodes = (
        Node("concat", ("state", "action"), "a", {"axis": 1}), Node("linear", ("a", "w"), "b"),
        Node("tanh", ("b",), "c"),
        Node("mul", ("c",), "d", {"right": 0.05}), Node("add", ("d", "action"), "e"),
        Node("clamp", ("e",), "f", {"minimum": -1.0, "maximum": 1.0}), Node("log_softmax", ("f",), "g", {"axis": -1}),
    )  # fmt: skip
    program = Program((Input("state", (4,)), Input("action", (2,))), nodes, ("f", "g"))
    pack = Pack({"net": program}, {"w": generator.standard_normal((2, 6)).astype(np.float32)})
    function = compiled(pack, tmp_path, 6, 4)
    state, action = generator.standard_normal(4).astype(np.float32), generator.standard_normal(2).astype(np.float32)
    expected = np.concatenate(pack.predict(state, action))
    assert np.abs(function(np.concatenate([state, action])) - expected).max() < 1e-6


def test_weights_are_constants_that_read_back_to_the_same_bits() -> None:
    weight = np.array([[1e-45, 3.4e38], [-1 / 3, 16777217.0]], np.float32)
    program = Program((Input("x", (2,)),), (Node("linear", ("x", "w"), "y"),), ("y",))
    text = source(program, {"w": weight}, "net")
    numbers = [np.float32(word.strip().rstrip("f")) for word in text.split("{")[2].split("}")[0].split(",")]
    numbers += [np.float32(word.strip().rstrip("f")) for word in text.split("{")[1].split("}")[0].split(",")]
    assert {number.tobytes() for number in weight.reshape(-1)} <= {number.tobytes() for number in numbers}


def test_what_the_export_does_not_know_is_refused_by_name(tmp_path: Path) -> None:
    nodes = (Node("index_add", ("x", "i", "x"), "y", {"axis": 1}),)
    program = Program((Input("x", (4,)), Input("i", (4,), "int64")), nodes, ("y",))
    with pytest.raises(UserError, match="index_add"):
        export(Pack({"net": program}, {}), tmp_path / "a.c", "net")
    with pytest.raises(UserError, match="identifier"):
        export(Pack({"net": program}, {}), tmp_path / "a.c", "2nd;")
    assert not list(tmp_path.iterdir())
