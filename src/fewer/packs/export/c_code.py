"""The C of each kind of operation, for `export_c`."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.program import Node
from fewer.packs.runtime.chain import Activation, Layer, stage_of
from fewer.packs.runtime.ops import Array

__all__ = ["activation", "array", "convolution", "file", "layer", "loop", "number"]

BINARY = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}",
    "maximum": "fmaxf({}, {})", "minimum": "fminf({}, {})",
}  # fmt: skip
_ACTIVATIONS = {
    1: "x < 0.0f ? 0.0f : x", 2: "x < 0.0f ? {a} * x : x", 3: "x > 0.0f ? {b} * x : {a} * {b} * expm1f({c} * x)",
    4: "tanhf(x)", 5: "1.0f / (1.0f + expf(-x))", 6: "0.5f * x * (1.0f + erff(x * 0.70710678f))",
    7: "0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)))", 8: "x < {a} ? {a} : x > {b} ? {b} : x",
    9: "fabsf(x)",
}  # fmt: skip


class Constants(Protocol):
    """What a piece of code needs of the writer."""

    tensors: Any
    shapes: dict[str, tuple[int, ...]]

    def constant(self, kind: str, values: Array) -> str:
        """The name of a constant array."""


def number(value: float) -> str:
    """A float that reads back to the same bits."""
    if not np.isfinite(value):
        return {np.inf: "INFINITY", -np.inf: "-INFINITY"}.get(value, "NAN")
    text = f"{np.float32(value):.9g}"
    return (text if any(mark in text for mark in ".e") else text + ".0") + "f"


def array(kind: str, values: Array) -> str:
    """A constant array; {} stands for its name."""
    flat = np.asarray(values).reshape(-1)
    items = [number(float(v)) for v in flat] if kind == "float" else [str(int(v)) for v in flat]
    text = textwrap.fill(", ".join(items or ["0"]), 110, break_long_words=False, break_on_hyphens=False)
    return f"static const {kind} {{}}[{max(1, len(flat))}] = {{{{\n{text}}}}};"


def loop(count: int, line: str) -> str:
    """The line for every i."""
    return f"for (int i = 0; i < {count}; i++) {line}"


def activation(kind: Activation, place: str, count: int) -> str:
    """An activation of a value in place."""
    numbers = {name: number(value) for name, value in zip("abc", kind[1:])}
    return loop(count, f"{{ const float x = {place}[i]; {place}[i] = {_ACTIVATIONS[kind[0]].format(**numbers)}; }}")


def elementwise(node: Node) -> Activation | None:
    """A node as an activation, or None."""
    stage = stage_of(node, {})
    return stage.activations[0] if stage is not None and len(stage.activations) == 1 else None


def _unsigned(values: Array) -> str:
    largest = int(np.max(values, initial=0))
    return "unsigned char" if largest < 256 else "unsigned short" if largest < 65536 else "unsigned long"


def layer(stage: Layer, constant: Callable[[str, Array], str], place: str, target: str) -> list[str]:
    """W x + b by columns: whole ones where a third is kept, else the kept weights with their rows."""
    outputs, inputs = stage.weight.shape
    lines = [f"memcpy({target}, {constant('float', stage.bias)}, {outputs} * sizeof(float));"] if outputs else []
    rows, columns = np.nonzero(stage.weight)
    if not len(rows):
        return lines
    head = "for (int j = {first}; j < {last}; j++) {{ const float x = {place}[j]; if (x == 0.0f) continue;"
    if len(rows) > stage.weight.size / 4:
        # four columns at a time, so that the sums are read and written a quarter as often
        whole, fours = constant("float", stage.weight.T), inputs // 4 * 4
        four = " + ".join(f"w[{k * outputs} + i] * x[{k}]" for k in range(4))
        pointers = f"const float *w = {whole} + j * {outputs}, *x = {place} + j;"
        lines.append(
            f"for (int j = 0; j < {fours}; j += 4) {{ {pointers} {loop(outputs, f'{target}[i] += {four};')} }}"
        )
        inner = f"{target}[i] += {whole}[j * {outputs} + i] * x;"
        rest = head.format(first=fours, last=inputs, place=place)
        return lines if fours == inputs else [*lines, f"{rest} {loop(outputs, inner)} }}"]
    order = np.lexsort((rows, columns))
    starts = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=inputs))])
    begin, row = constant(_unsigned(starts), starts), constant(_unsigned(rows), rows[order])
    weight = constant("float", stage.weight[rows, columns][order])
    inner = f"for (unsigned long p = {begin}[j]; p < {begin}[j + 1]; p++) {target}[{row}[p]] += {weight}[p] * x;"
    return [*lines, f"{head.format(first=0, last=inputs, place=place)} {inner} }}"]


def _planes(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Channels, height and width of one sample; a sequence has height 1."""
    return (shape[1], 1, shape[2]) if len(shape) == 3 else (shape[1], shape[2], shape[3])


def _two(values: Any, first: int) -> tuple[int, int]:
    return (first, values[0]) if len(values) == 1 else (values[0], values[1])


def convolution(node: Node, weight: Array, bias: Array | None, writer: Constants, places: tuple[str, str]) -> list[str]:
    """Every kept weight adds one shifted image."""
    x, y = places
    _, height, width = _planes(writer.shapes[node.inputs[0]])
    outputs, rows, columns = _planes(writer.shapes[node.output])
    options = node.attributes
    (sy, sx), (py, px) = _two(options["stride"], 1), _two(options["padding"], 0)
    dy, dx = _two(options["dilation"], 1)
    cube = weight.reshape(weight.shape[0], weight.shape[1], -1, weight.shape[-1])
    kept = np.nonzero(cube)
    first = kept[0] // (outputs // options["groups"]) * weight.shape[1] + kept[1]
    starts = np.concatenate([[0], np.cumsum(np.bincount(kept[0], minlength=outputs))])
    biases = writer.constant("float", np.zeros(outputs, np.float32) if bias is None else bias)
    begin, values = writer.constant(_unsigned(starts), starts), writer.constant("float", cube[kept])
    channel = writer.constant(_unsigned(first), first)
    down, right = (writer.constant(_unsigned(kept[axis]), kept[axis]) for axis in (2, 3))
    return textwrap.dedent(f"""\
        for (int o = 0; o < {outputs}; o++) {{
            float *to = {y} + o * {rows * columns};
            for (int i = 0; i < {rows * columns}; i++) to[i] = {biases}[o];
            for (unsigned long p = {begin}[o]; p < {begin}[o + 1]; p++) {{
                const float w = {values}[p];
                const float *from = {x} + (int){channel}[p] * {height * width};
                for (int r = 0; r < {rows}; r++) {{
                    const int v = r * {sy} + (int){down}[p] * {dy} - {py};
                    if (v < 0 || v >= {height}) continue;
                    for (int c = 0; c < {columns}; c++) {{
                        const int h = c * {sx} + (int){right}[p] * {dx} - {px};
                        if (h >= 0 && h < {width}) to[r * {columns} + c] += w * from[v * {width} + h];
                    }}
                }}
            }}
        }}""").split("\n")


def pool(node: Node, shape: tuple[int, ...], out: tuple[int, ...], x: str, y: str) -> list[str]:
    """The largest or the mean of each window; windows may hang over the edge."""
    channels, height, width = _planes(shape)
    _, rows, columns = _planes(out)
    options = node.attributes
    (ky, kx), (sy, sx) = _two(options["kernel"], 1), _two(options["stride"], 1)
    py, px = _two(options["padding"], 0)
    dy, dx = _two(options.get("dilation", [1, 1]), 1)
    best = node.op == "max_pool"
    # a place of the padding counts in a mean if asked to, but never what lies beyond the padding
    count = f"v < {height + py} && h < {width + px}" if options.get("count_padding") else "inside"
    take = (
        "if (inside && (n++ == 0 || from[v * {w} + h] > sum)) sum = from[v * {w} + h];"
        if best
        else ("n += ({count}); if (inside) sum += from[v * {w} + h];")
    )
    return textwrap.dedent(f"""\
        for (int o = 0; o < {channels}; o++) for (int r = 0; r < {rows}; r++) for (int c = 0; c < {columns}; c++) {{
            const float *from = {x} + o * {height * width};
            float sum = 0.0f;
            int n = 0;
            for (int a = 0; a < {ky}; a++) for (int b = 0; b < {kx}; b++) {{
                const int v = r * {sy} + a * {dy} - {py}, h = c * {sx} + b * {dx} - {px};
                const int inside = v >= 0 && v < {height} && h >= 0 && h < {width};
                {take.format(w=width, count=count)}
            }}
            {y}[(o * {rows} + r) * {columns} + c] = {"sum" if best else "sum / (float)n"};
        }}""").split("\n")


def batch_norm(node: Node, writer: Constants, x: str, y: str) -> list[str]:
    """A factor and a shift per channel."""
    mean, variance, *affine = (np.asarray(writer.tensors[name], dtype=np.float64) for name in node.inputs[1:])
    factor = 1 / np.sqrt(variance + node.attributes["epsilon"]) * (affine[0] if affine else 1)
    shift = -mean * factor + (affine[1] if len(affine) > 1 else 0)
    shape = writer.shapes[node.inputs[0]]
    each = int(np.prod(shape[2:]))
    names = [writer.constant("float", part.astype(np.float32)) for part in (factor, shift)]
    return [loop(int(np.prod(shape)), f"{y}[i] = {x}[i] * {names[0]}[i / {each}] + {names[1]}[i / {each}];")]


def softmax(op: str, shape: tuple[int, ...], x: str, y: str) -> list[str]:
    """Shares, or their logarithms, along the last axis."""
    count = shape[-1]
    last = "to[i] /= sum;" if op == "softmax" else "to[i] = from[i] - top - logf(sum);"
    return textwrap.dedent(f"""\
        for (int r = 0; r < {int(np.prod(shape[:-1]))}; r++) {{
            const float *from = {x} + r * {count};
            float *to = {y} + r * {count};
            float top = from[0], sum = 0.0f;
            for (int i = 1; i < {count}; i++) if (from[i] > top) top = from[i];
            for (int i = 0; i < {count}; i++) sum += to[i] = expf(from[i] - top);
            for (int i = 0; i < {count}; i++) {last}
        }}""").split("\n")


REDUCTIONS = {"sum": "{0} + {1}", "mean": "{0} + {1}", "amax": "fmaxf({0}, {1})", "amin": "fminf({0}, {1})"}


def reduced(node: Node, rank: int) -> tuple[str, list[int]] | None:
    """The reduction that a node is, and its axes; None for another node, or for axes that do not lie side by side."""
    if node.op == "adaptive_avg_pool" and set(node.attributes["size"]) == {1}:
        return "mean", list(range(rank - len(node.attributes["size"]), rank))
    if node.op not in REDUCTIONS:
        return None
    axes = sorted(axis % rank for axis in node.attributes["axes"])
    beside = bool(axes) and axes[0] > 0 and axes == list(range(axes[0], axes[-1] + 1))
    return (node.op, axes) if beside else None


def reduction(op: str, shape: tuple[int, ...], axes: list[int], x: str, y: str) -> list[str]:
    """Sums, means or extremes over axes that lie side by side."""
    before, along, after = (
        int(np.prod(part)) for part in (shape[: axes[0]], shape[axes[0] : axes[-1] + 1], shape[axes[-1] + 1 :])
    )
    step = REDUCTIONS[op].format("all", f"from[j * {after}]")
    last = f"all / {number(along)}" if op == "mean" else "all"
    return textwrap.dedent(f"""\
        for (int o = 0; o < {before}; o++) for (int i = 0; i < {after}; i++) {{
            const float *from = {x} + o * {along * after} + i;
            float all = from[0];
            for (int j = 1; j < {along}; j++) all = {step};
            {y}[o * {after} + i] = {last};
        }}""").split("\n")


def concat(places: list[str], shapes: list[tuple[int, ...]], axis: int, target: str) -> list[str]:
    """Blocks side by side."""
    axis %= len(shapes[0])
    if axis == 0:
        raise UserError("cat over samples", "cat within a sample, for an export to C")
    outer = int(np.prod(shapes[0][:axis]))
    sizes = [int(np.prod(shape[axis:])) for shape in shapes]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return [
        f"for (int i = 0; i < {outer}; i++) memcpy({target} + i * {starts[-1]} + {start}, {place} + i * {size}, "
        f"{size} * sizeof(float));"
        for place, size, start in zip(places, sizes, starts)
    ]


def file(name: str, inputs: int, outputs: int, constants: list[str], body: list[str], scratch: list[str]) -> str:
    """The whole text."""
    indent = "    "
    top = f"/* {name}: {inputs} numbers in, {outputs} numbers out, one sample. C99; link with -lm. */"
    declared = f"void {name}(const float *input, float *output)"
    lines = [top, "#include <math.h>", "#include <string.h>", "", declared + ";", ""]
    lines += [line.format(f"constant{place}") for place, line in enumerate(constants)]
    lines += ["", declared + " {"]
    # at high sparsity a layer may read nothing of what is before it
    unread = [f"(void){line.split(' ')[-1].split('[')[0]};" for line in scratch] + ["(void)input;"]
    lines += [indent + line for line in [*scratch, *body, *unread]]
    return "\n".join([*lines, "}", ""])
