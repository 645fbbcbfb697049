"""The export to ONNX, run in onnxruntime, against the runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from fewer import zoo
from fewer.core.errors import UserError
from fewer.packs.export.onnx import export, model
from fewer.packs.pack import load, write
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime.runtime import Network
from tests.packs.predictions import PREDICTIONS, traced


def session(data: bytes | str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(data, options)


@pytest.mark.parametrize("name", PREDICTIONS)
def test_onnxruntime_gives_the_runtimes_answers(name: str) -> None:
    _, program, tensors = traced(name)
    theirs, ours = session(model(program, tensors).SerializeToString()), Network(program, tensors)
    generator = np.random.default_rng(0)
    for samples in (1, 4):
        x = generator.standard_normal((samples, *PREDICTIONS[name][1])).astype(np.float32)
        expected, answer = ours.predict(x), theirs.run(None, {"x": x})[0]
        assert answer.shape == expected.shape
        assert np.abs(answer - expected).max() < 5e-5 * (1 + np.abs(expected).max())


@pytest.mark.parametrize("name", zoo.names())
def test_every_pack_that_comes_with_the_package_answers_the_same_in_onnxruntime(name: str, tmp_path: Path) -> None:
    pack = load(zoo.path(name))
    export(pack, tmp_path / "a.onnx")
    generator = np.random.default_rng(0)
    given = {
        item.name: generator.integers(0, 2, (2, *item.shape)).astype(item.dtype)
        if item.dtype != "float32"
        else generator.random((2, *item.shape), dtype=np.float32)
        for item in next(iter(pack.networks.values())).inputs
    }
    expected, answer = pack.predict(**given), session(str(tmp_path / "a.onnx")).run(None, given)[0]
    assert answer.shape == expected.shape
    assert np.abs(answer - expected).max() < 2e-5 * (1 + np.abs(expected).max())


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("op", ["avg_pool", "max_pool", "conv"])
def test_padding_before_a_window_stays_what_it_is(op: str, width: int) -> None:
    window = {"stride": [2, 2], "padding": [0, 0]}
    options = {
        "avg_pool": {**window, "kernel": [2, 2], "ceil": False, "count_padding": True},
        "max_pool": {**window, "kernel": [2, 2], "ceil": False, "dilation": [1, 1]},
        "conv": {**window, "dilation": [1, 1], "groups": 1, "transposed": False, "output_padding": [0, 0]},
    }[op]
    frame = Node("pad", ("x",), "p", {"widths": [width] * 4, "mode": "constant", "value": 0.0})
    reader = Node(op, ("p", "w") if op == "conv" else ("p",), "y", options)
    program = Program((Input("x", (1, 6, 6)),), (frame, reader), ("y",))
    tensors = {"w": np.ones((1, 1, 2, 2), np.float32)}
    x = -np.ones((2, 1, 6, 6), np.float32)  # below the zeros around it
    answer = session(model(program, tensors).SerializeToString()).run(None, {"x": x})[0]
    assert np.abs(answer - Network(program, tensors).predict(x)).max() < 1e-6


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("number", [0.5, 1.0, 1])
def test_a_whole_number_is_compared_with_a_fraction_as_it_is(side: str, number: float) -> None:
    program = Program((Input("x", (4,), "int64"),), (Node("gt", ("x",), "y", {side: number}),), ("y",))
    x = np.array([[-1, 0, 1, 2]])
    answer = session(model(program, {}).SerializeToString()).run(None, {"x": x})[0]
    assert answer.tolist() == (number > x if side == "left" else x > number).tolist()


@pytest.mark.parametrize(("size", "alone"), [([2, 3], True), ([4, 3], False), ([2, 4], False)])
def test_a_pool_to_a_size_that_divides_is_one_operation(size: list[int], alone: bool) -> None:
    program = Program((Input("x", (2, 6, 9)),), (Node("adaptive_avg_pool", ("x",), "y", {"size": size}),), ("y",))
    operations = [node.op_type for node in model(program, {}).graph.node]
    assert (operations == ["AveragePool", "Identity"]) == alone


def test_masks_are_folded_into_the_model(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    program = Program((Input("x", (5,)),), (Node("linear", ("x", "w"), "y"), Node("tanh", ("y",), "z")), ("z",))
    weight, mask = generator.standard_normal((3, 5)).astype(np.float32), generator.random((3, 5)) < 0.4
    write(tmp_path / "a.pack", program, {"w": weight}, masks={"w": mask})
    export(load(tmp_path / "a.pack"), tmp_path / "a.onnx")
    x = generator.standard_normal((9, 5)).astype(np.float32)
    answer = session(str(tmp_path / "a.onnx")).run(None, {"x": x})[0]
    assert np.abs(answer - np.tanh(x @ (weight * mask).T)).max() < 1e-6


def test_what_onnx_cannot_say_is_refused_by_name(tmp_path: Path) -> None:
    program = Program(
        (Input("x", (5,)), Input("i", (5,), "int64")), (Node("index_add", ("x", "i", "x"), "y", {"axis": 1}),), ("y",)
    )
    with pytest.raises(UserError, match="index_add"):
        model(program, {})
    with pytest.raises(UserError, match="nobody"):
        write(tmp_path / "a.pack", Program((Input("x", (5,)),), (Node("relu", ("x",), "y"),), ("y",)), {})
        export(load(tmp_path / "a.pack"), tmp_path / "a.onnx", network="nobody")
