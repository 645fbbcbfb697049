"""A pack as an ONNX model: masks folded, any number of samples, any length where the pack takes any, opset 20.

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
# written with sizes of their values in them
_FIXED = ("put_slice", "roll", "max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "interpolate", "var",
          "sort", "argsort", "group_norm", "index_add")  # fmt: skip


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
    values = one_sample(program, tensors)
    timed = _timed(program, tensors, values)
    if any(node.op in _FIXED and timed.keys() & {*node.inputs, node.output} for node in program.nodes):
        program, timed = program.at_length(program.usual), {}
    graph = Graph(onnx, program, dict(tensors), values)
    for node in program.nodes:
        # what depends on tensors alone is a tensor
        sizes = [*node.attributes.get("shape", ()), node.attributes.get("stop", 0)]
        fixed = not any(isinstance(size, str) for size in sizes)
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
        helper.make_tensor_value_info(
            item.name, kind(np.dtype(item.dtype)), ["batch", *timed.get(item.name, item.shape)]
        )
        for item in program.inputs
    ]
    outputs = [
        helper.make_tensor_value_info(
            f"answer:{name}", kind(graph.values[name].dtype), ["batch", *timed.get(name, values[name].shape[1:])]
        )
        for name in program.outputs
    ]
    body = helper.make_graph(graph.nodes, "fewer", inputs, outputs, graph.initializers())
    made = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="fewer")
    made.ir_version = 9  # the oldest that has this opset, so that older runtimes read the file too
    onnx.checker.check_model(made)
    return made


def _timed(
    program: Program, tensors: Mapping[str, Array], values: Mapping[str, Array]
) -> dict[str, list[int | str | None]]:
    """Sizes behind the samples of every value that varies with the length of sequences; those that do have names."""
    if program.time is None:
        return {}
    usual = program.usual
    other = one_sample(program, tensors, usual + 1 if usual == 1 else usual - 1)
    names: dict[tuple[int, int], str] = {(usual, len(other[program.time.inputs[0]][0])): "time"}
    return {
        name: [a if a == b else names.get((a, b)) for a, b in zip(value.shape[1:], other[name].shape[1:])]
        for name, value in values.items()
        if value.shape != other[name].shape
    }
