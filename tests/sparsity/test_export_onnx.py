"""The export to ONNX, run in onnxruntime, against the runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from predictions import PREDICTIONS, traced

from fewer.core.errors import UserError
from fewer.sparse.export_onnx import export, model
from fewer.sparse.pack import load, write
from fewer.sparse.program import Input, Node, Program
from fewer.sparse.runtime import Network


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
