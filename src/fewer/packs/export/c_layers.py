"""Layers in C: products with kept weights, recurrent layers, norms and attention."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable

import numpy as np

from fewer.packs.export.c_ops import Operation, Writing, products, scores_softmax
from fewer.packs.export.c_sizes import broadcast
from fewer.packs.export.c_views import View, assign, number
from fewer.packs.program import Node
from fewer.packs.runtime.chain import Activation, Layer, stage_of
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.recurrent import GATES

__all__ = ["LAYERS", "activation", "layer", "layer_constants", "unsigned"]

_ACTIVATIONS = {
    1: "x < 0.0f ? 0.0f : x", 2: "x < 0.0f ? {a} * x : x", 3: "x > 0.0f ? {b} * x : {a} * {b} * expm1f({c} * x)",
    4: "tanhf(x)", 5: "1.0f / (1.0f + expf(-x))", 6: "0.5f * x * (1.0f + erff(x * 0.70710678f))",
    7: "0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)))", 8: "x < {a} ? {a} : x > {b} ? {b} : x",
    9: "fabsf(x)",
}  # fmt: skip


def activation(kind: Activation, place: str, count: int) -> str:
    """An activation of a value in place."""
    numbers = {name: number(value) for name, value in zip("abc", kind[1:])}
    line = f"{{ const float x = {place}[i]; {place}[i] = {_ACTIVATIONS[kind[0]].format(**numbers)}; }}"
    return f"for (int i = 0; i < {count}; i++) {line}"


def _activation(w: Writing, n: Node) -> View:
    stage = stage_of(n, {})
    assert stage is not None  # every operation that is registered with this has a stage
    target = w.room(w.shapes[n.output])
    w.body.append(assign(target, "{0}", w.view(n.inputs[0])))
    w.body.append(activation(stage.activations[0], target.place, math.prod(target.shape)))
    return target


def unsigned(values: Array) -> str:
    """The narrowest type that holds all values."""
    largest = int(np.max(values, initial=0))
    return "unsigned char" if largest < 256 else "unsigned short" if largest < 65536 else "unsigned long"


def layer_constants(stage: Layer, constant: Callable[[str, Array], str]) -> tuple[str, str, str] | None:
    """Names of the columns' starts, the rows and the weights, by columns; two of them empty where columns are whole."""
    rows, columns = np.nonzero(stage.weight)
    if not len(rows):
        return None
    if len(rows) > stage.weight.size / 4:
        return "", "", constant("float", stage.weight.T)
    order = np.lexsort((rows, columns))
    starts = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=stage.weight.shape[1]))])
    begin, row = constant(unsigned(starts), starts), constant(unsigned(rows), rows[order])
    return begin, row, constant("float", stage.weight[rows, columns][order])


def layer(stage: Layer, constant: Callable[[str, Array], str], place: str, target: str) -> list[str]:
    """W x + b by columns: whole ones where a quarter is kept, else the kept weights with their rows."""
    outputs, inputs = stage.weight.shape
    lines = [f"memcpy({target}, {constant('float', stage.bias)}, {outputs} * sizeof(float));"] if outputs else []
    found = layer_constants(stage, constant)
    if found is None:
        return lines
    begin, row, weight = found
    head = "for (int j = {first}; j < {last}; j++) {{ const float x = {place}[j]; if (x == 0.0f) continue;"
    if not begin:
        # four columns at a time, so that the sums are read and written a quarter as often
        fours = inputs // 4 * 4
        four = " + ".join(f"w[{k * outputs} + i] * x[{k}]" for k in range(4))
        pointers = f"const float *w = {weight} + j * {outputs}, *x = {place} + j;"
        each = f"for (int i = 0; i < {outputs}; i++)"
        lines.append(f"for (int j = 0; j < {fours}; j += 4) {{ {pointers} {each} {target}[i] += {four}; }}")
        rest = head.format(first=fours, last=inputs, place=place)
        inner = f"{each} {target}[i] += {weight}[j * {outputs} + i] * x;"
        return lines if fours == inputs else [*lines, f"{rest} {inner} }}"]
    inner = f"for (unsigned long p = {begin}[j]; p < {begin}[j + 1]; p++) {target}[{row}[p]] += {weight}[p] * x;"
    return [*lines, f"{head.format(first=0, last=inputs, place=place)} {inner} }}"]


def _linear(w: Writing, n: Node) -> View:
    """A layer whose weights are no constants."""
    made = products(w, w.view(n.inputs[0]), w.view(n.inputs[1]).permuted([1, 0]))
    if len(n.inputs) > 2:
        w.body.append(assign(made, "{0}", w.view(n.inputs[2]), sign="+="))
    return made


def _embedding(w: Writing, n: Node) -> View:
    """Rows of a table, kept numbers alone where they are few; a number outside the table means its nearest row."""
    table, index = w.tensors.get(n.inputs[0]), w.solid(n.inputs[1])
    rows, width = w.shapes[n.inputs[0]][0], math.prod(w.shapes[n.inputs[0]][1:])
    target = w.room(w.shapes[n.output])
    if table is not None and np.count_nonzero(table) < table.size / 4:
        row, column = np.nonzero(table.reshape(rows, width))
        starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
        begin, place = w.constant(unsigned(starts), starts), w.constant(unsigned(column), column)
        values = w.constant("float", table.reshape(rows, width)[row, column])
        fill = f"for (unsigned long p = {begin}[j]; p < {begin}[j + 1]; p++) to[{place}[p]] = {values}[p];"
        fill = f"memset(to, 0, {width} * sizeof(float)); {fill}"
    else:
        fill = f"memcpy(to, {w.solid(n.inputs[0])} + j * {width}, {width} * sizeof(float));"
    w.body += textwrap.dedent(f"""\
        for (int i = 0; i < {math.prod(w.shapes[n.inputs[1]])}; i++) {{
            const float at = {index}[i];
            const int j = !(at > 0.0f) ? 0 : at >= {rows}.0f ? {rows - 1} : (int)at;
            float *to = {target.place} + i * {width};
            {fill}
        }}""").split("\n")
    return target


_GATE = "1.0f / (1.0f + expf(-({a}[{k} + i] + {b}[{k} + i])))"
_STEPS = {
    "rnn": ["const float x = {a}[i] + {b}[i];", "{h}[i] = {curve};"],
    "gru": [
        "const float r = {0}, z = {1};", "const float m = tanhf({a}[{2} + i] + r * {b}[{2} + i]);",
        "{h}[i] = m + z * ({h}[i] - m);",
    ],
    "lstm": [
        "const float k = {0}, f = {1}, o = {3};", "{c}[i] = f * {c}[i] + k * tanhf({a}[{2} + i] + {b}[{2} + i]);",
        "{g}[i] = o * tanhf({c}[i]);",
    ],
}  # fmt: skip


def _step(op: str, size: int, curve: str, **names: str) -> list[str]:
    """The lines that make one state of the last, from what inputs (a) and state (b) add to the gates."""
    gates = [_GATE.format(k=k * size, **names) for k in range(4)]
    gates[2] = str(2 * size)  # not a share: a place
    lines = [line.format(*gates, curve=curve, **names) for line in _STEPS[op]]
    return [f"for (int i = 0; i < {size}; i++) {{", *lines, "}"]


def _recurrent(w: Writing, n: Node) -> View:
    """A loop over time, kept weights alone in both products."""
    (steps, _, features), rest = w.shapes[n.inputs[0]], list(n.inputs[5:])
    matrix, again, bias, added = (np.asarray(w.tensors[name], np.float32) for name in n.inputs[1:5])
    (rows, state), lstm = again.shape, n.op == "lstm"
    size = rows // GATES[n.op]
    projection = w.tensors[rest.pop()] if lstm and len(rest) in (1, 3) else None
    x, target = w.solid(n.inputs[0]), w.room((steps, 1, state))
    sizes = {"a": rows, "b": rows, "h": state} | ({"c": size, "g": size} if lstm else {})
    names = {name: w.room((count,)).place for name, count in sizes.items()}
    for name, first in zip("hc" if lstm else "h", rest or (None, None)):
        given = [] if first is None else [View.solid(w.solid(first), (sizes[name],))]
        w.body.append(assign(View.solid(names[name], (sizes[name],)), "{0}" if given else "0.0f", *given))
    step = layer(Layer(matrix, bias), w.constant, f"({x} + t * {features})", names["a"])
    step += layer(Layer(again, added), w.constant, names["h"], names["b"])
    step += _step(n.op, size, _ACTIVATIONS[4 if n.attributes.get("activation") == "tanh" else 1], **names)
    if projection is not None:
        step += layer(Layer(projection, np.zeros(state, np.float32)), w.constant, names["g"], names["h"])
    elif lstm:
        step.append(f"memcpy({names['h']}, {names['g']}, {state} * sizeof(float));")
    order = f"const int t = {f'{steps - 1} - s' if n.attributes['reverse'] else 's'};"
    last = f"memcpy({target.place} + t * {state}, {names['h']}, {state} * sizeof(float));"
    w.body += [f"for (int s = 0; s < {steps}; s++) {{", order, *step, last, "}"]
    answer = target.place if n.attributes.get("answer", "states") == "states" else names["c"]
    return View.solid(answer, w.shapes[n.output])


def _batch_norm(w: Writing, n: Node) -> View:
    """A factor and a shift per channel."""
    mean, variance, *affine = (np.asarray(w.tensors[name], dtype=np.float64) for name in n.inputs[1:])
    factor = 1 / np.sqrt(variance + n.attributes["epsilon"]) * (affine[0] if affine else 1)
    shift = -mean * factor + (affine[1] if len(affine) > 1 else 0)
    target = w.room(w.shapes[n.output])
    channel = (1, len(factor), *[1] * (len(target.shape) - 2))
    parts = [View.solid(w.constant("float", part.astype(np.float32)), channel) for part in (factor, shift)]
    w.body.append(assign(target, "{0} * {1} + {2}", w.view(n.inputs[0]), *parts))
    return target


def _normed(w: Writing, n: Node, groups: int, each: int) -> View:
    """Zero mean and unit variance within each of the groups of numbers that lie one after another."""
    x, target = w.solid(n.inputs[0]), w.room(w.shapes[n.output])
    w.body += textwrap.dedent(f"""\
        for (int r = 0; r < {groups}; r++) {{
            const float *from = {x} + r * {each};
            float *to = {target.place} + r * {each}, mean = 0.0f, all = 0.0f;
            for (int i = 0; i < {each}; i++) mean += from[i];
            mean /= {number(each)};
            for (int i = 0; i < {each}; i++) all += (from[i] - mean) * (from[i] - mean);
            all = 1.0f / sqrtf(all / {number(each)} + {number(n.attributes["epsilon"])});
            for (int i = 0; i < {each}; i++) to[i] = (from[i] - mean) * all;
        }}""").split("\n")
    return target


def _affine(w: Writing, n: Node, target: View, shape: tuple[int, ...]) -> View:
    for sign, name in zip(("*=", "+="), n.inputs[1:]):
        w.body.append(assign(target, "{0}", View.solid(w.solid(name), shape), sign=sign))
    return target


def _layer_norm(w: Writing, n: Node) -> View:
    shape = w.shapes[n.inputs[0]]
    last = shape[len(shape) - n.attributes["axes"] :]
    each = math.prod(last)
    return _affine(w, n, _normed(w, n, math.prod(shape) // max(1, each), each), last)


def _group_norm(w: Writing, n: Node) -> View:
    shape, groups = w.shapes[n.inputs[0]], n.attributes["groups"]
    target = _normed(w, n, shape[0] * groups, math.prod(shape[1:]) // groups)
    return _affine(w, n, target, (1, shape[1], *[1] * (len(shape) - 2)))


def _attention(w: Writing, n: Node) -> View:
    q, k, v, *mask = (w.view(name) for name in n.inputs)
    a, turned = n.attributes, [*range(len(k.shape) - 2), len(k.shape) - 1, len(k.shape) - 2]
    scale = float(a["scale"]) if a.get("scale") is not None else 1 / math.sqrt(q.shape[-1])
    scores = products(w, q, k.permuted(turned), scale)
    if a["causal"]:
        seen = np.tril(np.ones(scores.shape[-2:], np.float32))
        mask = [View.solid(w.constant("float", seen), seen.shape)]
    if mask:
        hidden = a["causal"] or w.booleans(n.inputs[3])
        full = w.room(broadcast(scores.shape, mask[0].shape))
        line = "{1} != 0.0f ? {0} : -INFINITY" if hidden else "{0} + {1}"
        w.body.append(assign(full, line, scores, mask[0]))
        scores = full
    scores_softmax(w, scores, scores, -1)
    return products(w, scores, v)


LAYERS: dict[str, Operation] = {
    **dict.fromkeys(("gelu", "elu", "leaky_relu", "clamp"), _activation), "linear": _linear, "embedding": _embedding,
    **dict.fromkeys(GATES, _recurrent), "batch_norm": _batch_norm, "layer_norm": _layer_norm,
    "group_norm": _group_norm, "attention": _attention,
}  # fmt: skip
