"""Recurrent layers in ONNX, whose gates stand in another order than torch's."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.export.onnx_graph import Converter, Graph
from fewer.packs.program import Node
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.recurrent import GATES

__all__ = ["RECURRENT"]

_ORDER = {"rnn": (0,), "gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}  # ONNX has z r n, and i o f g


def _ordered(op: str, value: Array) -> Array:
    gates = np.split(np.asarray(value, np.float32), GATES[op])
    return np.concatenate([gates[place] for place in _ORDER[op]])[None]


def _recurrent(g: Graph, n: Node) -> object:
    x, *weights = n.inputs[:5]
    if any(name not in g.tensors for name in weights):
        raise UserError(f"{n.op} with weights that depend on the input", "constant weights, for an export to ONNX")
    first = list(n.inputs[5:])
    if n.op == "lstm" and len(first) in (1, 3):
        raise UserError("an lstm with a projection (proj_size)", "one without, for an export to ONNX", "use the pack")
    w, v, b, c = (_ordered(n.op, g.tensors[name]) for name in weights)
    names = [f"{n.output}:{part}" for part in ("w", "v", "b")]
    g.tensors.update(zip(names, (w, v, np.concatenate([b, c], axis=1))))
    states = [g.node("Unsqueeze", [name, g.constant([0])]) for name in first]
    options: dict[str, Any] = {"linear_before_reset": 1} if n.op == "gru" else {}
    if n.op == "rnn":
        options["activations"] = [n.attributes["activation"].capitalize()]
    cell = n.attributes.get("answer") == "cell"
    inputs = [x, *names, *(["", *states] if states else [])]
    outputs = ["", "", f"{n.output}:whole"] if cell else [f"{n.output}:whole"]
    direction = "reverse" if n.attributes["reverse"] else "forward"
    size = w.shape[1] // GATES[n.op]
    g.node(n.op.upper(), inputs, output=outputs, hidden_size=size, direction=direction, **options)
    return g.node("Squeeze", [outputs[-1], g.constant([0 if cell else 1])], output=n.output)


RECURRENT: dict[str, Converter] = dict.fromkeys(GATES, _recurrent)
