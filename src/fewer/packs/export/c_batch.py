"""A chain of layers for several samples in C: 32 side by side, so that a kept weight serves them all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fewer.packs.export.c_layers import activation, layer_constants, unsigned
from fewer.packs.runtime.chain import Layer, Stage, joined, pruned
from fewer.packs.runtime.ops import Array

__all__ = ["ADD_TOGETHER", "TOGETHER", "batch_body"]

TOGETHER = 32
_SUM = f"for (int n = 0; n < {TOGETHER}; n++) to[n] += w * from[n];"


def _column(kind: str) -> str:
    """A function of its own, whose arguments a compiler knows to be apart: the kept weights of one input."""
    return f"""\
FEWER_APART static void fewer_add_{kind.replace(" ", "_")}(float *restrict there, const float *restrict from,
                        const {kind} *restrict rows, const float *restrict weights, unsigned long count) {{
    for (unsigned long p = 0; p < count; p++) {{
        float *to = there + (long)rows[p] * {TOGETHER};
        const float w = weights[p];
        {_SUM}
    }}
}}
"""


_WHOLE = f"""\
FEWER_APART static void fewer_add_whole(float *restrict there, const float *restrict from,
                        const float *restrict weights, int count) {{
    for (int p = 0; p < count; p++) {{
        float *to = there + (long)p * {TOGETHER};
        const float w = weights[p];
        {_SUM}
    }}
}}
"""
# by the name that a call of it begins with
ADD_TOGETHER = {
    "fewer_add_whole(": _WHOLE,
    **{f"fewer_add_unsigned_{kind}(": _column(f"unsigned {kind}") for kind in ("char", "short", "long")},
}
_EACH = f"for (int n = 0; n < {TOGETHER}; n++)"


def batch_body(stages: list[Stage], inputs: int, constant: Callable[[str, Array], str]) -> tuple[list[str], int]:
    """Lines that change the buffer `here` with the help of `there`, and the largest number of features.

    Constants are those of the function for one sample.
    """
    lines: list[str] = []
    widest = width = inputs
    for stage in pruned(joined(stages)):
        if isinstance(stage, Layer):
            width = stage.width
            lines += [*_layer(stage, constant), "{ float *swap = here; here = there; there = swap; }"]
        else:
            at = f"i * {TOGETHER} + n"
            parts = (stage.centre, stage.factor, stage.shift)
            names = [constant("float", np.ascontiguousarray(np.broadcast_to(part, width))) for part in parts]
            change = f"here[{at}] = (here[{at}] - {names[0]}[i]) * {names[1]}[i] + {names[2]}[i];"
            lines.append(f"for (int i = 0; i < {width}; i++) {_EACH} {change}")
        lines += [activation(kind, "here", width * TOGETHER) for kind in stage.activations]
        widest = max(widest, width)
    return lines, widest


def _layer(stage: Layer, constant: Callable[[str, Array], str]) -> list[str]:
    """W x + b of all of them, by columns as they are stored for one."""
    outputs, inputs = stage.weight.shape
    bias = constant("float", stage.bias)
    lines = [f"for (int i = 0; i < {outputs}; i++) {_EACH} there[i * {TOGETHER} + n] = {bias}[i];"]
    found = layer_constants(stage, constant)
    if found is None:
        return lines
    begin, row, weight = found
    each = f"for (int j = 0; j < {inputs}; j++)"
    if not begin:
        return [
            *lines,
            f"{each} fewer_add_whole(there, here + j * {TOGETHER}, {weight} + (long)j * {outputs}, {outputs});",
        ]
    kind = unsigned(np.nonzero(stage.weight)[0]).replace(" ", "_")
    kept = f"{row} + {begin}[j], {weight} + {begin}[j], {begin}[j + 1] - {begin}[j]"
    return [*lines, f"{each} fewer_add_{kind}(there, here + j * {TOGETHER}, {kept});"]
