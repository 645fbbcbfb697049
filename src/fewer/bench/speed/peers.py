"""What a user would run instead: the same network, dense, in onnxruntime, torch and OpenVINO, on one thread."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fewer.packs.export import onnx as export_onnx
from fewer.packs.runtime.runtime import Pack

__all__ = ["ONNX", "Call", "onnxruntime_session", "peers"]

ONNX = "onnxruntime"
Call = Callable[[], Any]


def onnxruntime_session(path: Path, threads: int = 1) -> Any:
    """A session with as many threads as asked for."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def peers(
    pack: Pack, net: nn.Module | None, x: Mapping[str, Any], folder: Path, *, compiles: bool
) -> Iterator[tuple[str, Call]]:
    """Calls on one batch, inputs by name; what is not installed is left out."""
    path = folder / "dense.onnx"
    export_onnx.export(pack, path)
    session, given = onnxruntime_session(path), dict(x)
    yield ONNX, lambda: session.run(None, given)
    if net is not None:
        tensors = [torch.from_numpy(value) for value in x.values()]
        yield "torch", lambda: _called(net, tensors)
        if compiles and (shutil.which("g++") or shutil.which("clang++")):
            torch._dynamo.reset()
            made = torch.compile(net, dynamic=False)
            yield "torch.compile", lambda: _called(made, tensors)
    yield from _openvino(path, x)


def _called(net: Callable[..., Any], tensors: list[torch.Tensor]) -> Any:
    with torch.inference_mode():
        return net(*tensors)


def _openvino(path: Path, x: Mapping[str, Any]) -> Iterator[tuple[str, Call]]:
    """In single precision, as everybody else here; its own default on some processors is bfloat16."""
    try:
        import openvino
    except ImportError:
        return
    options = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({name: list(value.shape) for name, value in x.items()})
    request, given = core.compile_model(model, "CPU", options).create_infer_request(), dict(x)
    yield "OpenVINO", lambda: request.infer(given, share_inputs=True)
