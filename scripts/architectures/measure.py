"""One architecture: whether it packs, exports to C and to ONNX, and how far each answer is from torch's."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.packs.export import c, onnx
from fewer.packs.pack import load, write
from fewer.packs.runtime.runtime import Pack
from fewer.packs.trace.trace import trace

__all__ = ["LARGEST_C", "measured"]

Array = np.ndarray[Any, Any]
LARGEST_C = 2_000_000  # weights; a larger network is no microcontroller's
_FLAGS = ["-std=c99", "-Wall", "-Werror", "-O1", "-shared", "-fPIC"]


def _stirred(model: nn.Module) -> nn.Module:
    """Parameters that start as one number for all made different: zeros and ones would hide mistakes."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point() and parameter.numel() and parameter.min() == parameter.max():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def _distance(answer: Array, expected: Array) -> float:
    """The largest difference by the largest output."""
    return float(np.abs(answer.astype(np.float64) - expected).max() / np.abs(expected).max())


def _tried(row: dict[str, Any], name: str, call: Callable[[], float]) -> None:
    try:
        row[name] = call()
    except UserError as error:
        row[f"{name} refused"] = str(error)
    except Exception as error:  # a defect: the table shows it
        row[f"{name} refused"] = f"fails with {type(error).__name__}: {str(error).splitlines()[0]:.200}"


def _in_c(pack: Pack, inputs: list[Tensor], expected: Array) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path, library = Path(folder) / "net.c", Path(folder) / "net.so"
        c.export(pack, path, "net")
        subprocess.run(["gcc", *_FLAGS, str(path), "-o", str(library), "-lm"], check=True)
        rows = [np.concatenate([value[i].numpy().astype(np.float32).reshape(-1) for value in inputs])
                for i in range(len(expected))]  # fmt: skip
        given, answer = np.ascontiguousarray(rows), np.full(expected.shape, np.nan, np.float32)
        places = [value.ctypes.data_as(ctypes.c_void_p) for value in (given, answer)]
        ctypes.CDLL(str(library)).net_batch(*places, len(expected))
    return _distance(answer, expected)


def _in_onnx(pack: Pack, inputs: list[Tensor], expected: Array) -> float:
    import onnxruntime

    network = next(iter(pack.networks.values()))
    model = onnx.model(network.program, pack.tensors())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    given = {item.name: value.numpy() for item, value in zip(network.inputs, inputs)}
    return _distance(session.run(None, given)[0], expected)


def measured(make: Callable[[], tuple[nn.Module, list[Tensor]]]) -> dict[str, Any]:
    """What became of it, for three samples where two were traced."""
    torch.manual_seed(0)
    model, examples = make()
    model = _stirred(model)
    inputs = [torch.cat([value, value.flip(0)[:1]]) for value in examples]
    with torch.no_grad():
        expected = model(*inputs).numpy()
    row: dict[str, Any] = {
        "weights": sum(parameter.numel() for parameter in model.parameters()),
        "inputs": [f"{str(value.dtype).removeprefix('torch.')} {list(value.shape[1:])}" for value in inputs],
    }
    try:
        program, tensors = trace(model, examples)
    except UserError as error:
        return {**row, "pack refused": str(error)}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "net.pack", program, tensors)
        row["bytes"] = (Path(folder) / "net.pack").stat().st_size
        pack = load(Path(folder) / "net.pack", memory=1 << 34)
    row["operations"] = dict(Counter(node.op for node in program.nodes).most_common())
    _tried(row, "pack", lambda: _distance(pack.predict(*[value.numpy() for value in inputs]), expected))
    if row["weights"] <= LARGEST_C:
        _tried(row, "c", lambda: _in_c(pack, inputs, expected))
    _tried(row, "onnx", lambda: _in_onnx(pack, inputs, expected))
    return row
