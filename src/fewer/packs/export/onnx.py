"""A pack as an ONNX model: masks folded, any number of samples, opset 20.

export(load("policy.pack"), "policy.onnx")
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from fewer.core.errors import MissingExtra, UserError
from fewer.core.files.atomic import write_atomically
from fewer.packs.export.onnx_graph import Graph
from fewer.packs.export.onnx_layers import LAYERS
from fewer.packs.export.onnx_recurrent import RECURRENT
from fewer.packs.export.onnx_shapes import SHAPES
from fewer.packs.program import Program
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.runtime import Pack
from fewer.packs.runtime.steps import one_sample, step_of

__all__ = ["export", "model"]

OPSET = 20
CONVERTERS = {**LAYERS, **SHAPES, **RECURRENT}


def export(pack: Pack, path: str | os.PathLike[str], *, network: str | None = None) -> None:
    """Write the ONNX file; `network` is the first one of the pack unless named."""
    if network is not None and network not in pack.networks:
        raise UserError(f"network {network!r}", f"one of {', '.join(pack.networks)}")
    chosen = pack.networks[network] if network is not None else next(iter(pack.networks.values()))
    write_atomically(path, model(chosen.program, pack.tensors()).SerializeToString())


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise MissingExtra("the package onnx is missing", "it installed", "pip install 'fewer[export]'") from error
    return onnx


def model(program: Program, tensors: Mapping[str, Array]) -> Any:
    """The checked model."""
    onnx = _onnx()
    graph = Graph(onnx, program, dict(tensors), one_sample(program, tensors))
    for node in program.nodes:
        # what depends on tensors alone is a tensor
        fixed = all(isinstance(size, int) for size in node.attributes.get("shape", ()))
        if fixed and all(name in graph.tensors for name in node.inputs):
            graph.tensors[node.output] = step_of(node).run(graph.tensors, 1)
        elif node.op not in CONVERTERS:
            raise UserError(f"operation {node.op}", "one that the export to ONNX knows", "use the pack")
        else:
            CONVERTERS[node.op](graph, node)
    for name in program.outputs:
        graph.node("Identity", [name], output=f"answer:{name}")
    kind, helper = onnx.helper.np_dtype_to_tensor_dtype, onnx.helper
    inputs = [
        helper.make_tensor_value_info(item.name, kind(np.dtype(item.dtype)), ["batch", *item.shape])
        for item in program.inputs
    ]
    outputs = [
        helper.make_tensor_value_info(
            f"answer:{name}", kind(graph.values[name].dtype), ["batch", *graph.values[name].shape[1:]]
        )
        for name in program.outputs
    ]
    body = helper.make_graph(graph.nodes, "fewer", inputs, outputs, graph.initializers())
    made = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="fewer")
    made.ir_version = 9  # the oldest that has this opset, so that older runtimes read the file too
    onnx.checker.check_model(made)
    return made
