"""Convolutions, pools, resizing and indices in C, in any number of dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.export.c_convolution import flat_convolution
from fewer.packs.export.c_layers import unsigned
from fewer.packs.export.c_ops import Operation, Writing, taken
from fewer.packs.export.c_sizes import broadcast
from fewer.packs.export.c_views import View, assign, loops, number
from fewer.packs.program import Node
from fewer.packs.runtime.layers import sources

__all__ = ["PLACES"]


def _flat(letters: Sequence[str], sizes: Sequence[int]) -> str:
    """The place of some letters in an image."""
    return " + ".join(f"{i} * {math.prod(sizes[at + 1 :])}" for at, i in enumerate(letters))


def _conv(w: Writing, n: Node) -> View:
    """Every kept weight adds one shifted image."""
    a, weight = n.attributes, w.tensors.get(n.inputs[1])
    if weight is None or any(name not in w.tensors for name in n.inputs[2:]):
        raise UserError("a convolution with weights that depend on the input", "constant weights, for an export to C")
    if not a["transposed"] and set(a["stride"]) == {1} and w.shapes[n.inputs[0]][0] == 1:
        return flat_convolution(w, n)
    x, target, rank, groups = w.solid(n.inputs[0]), w.room(w.shapes[n.output]), weight.ndim - 2, a["groups"]
    small, large = w.shapes[n.inputs[0]][2:], w.shapes[n.output][2:]
    kept = np.nonzero(weight)
    if a["transposed"]:  # (inputs, outputs within a group, ...)
        first = kept[0]
        second = kept[1] + kept[0] // (weight.shape[0] // groups) * weight.shape[1]
    else:
        first = kept[1] + kept[0] // (weight.shape[0] // groups) * weight.shape[1]
        second = kept[0]
    bias = w.tensors[n.inputs[2]] if len(n.inputs) > 2 else np.zeros(target.shape[1], np.float32)
    channel = (1, target.shape[1], *[1] * rank)
    w.body.append(assign(target, "{0}", View.solid(w.constant("float", bias), channel)))
    tables = [w.constant(unsigned(part), part) for part in (first, second, *kept[2:])]
    values = w.constant("float", weight[kept])
    # the loop runs over the side that is not shifted: outputs, or inputs of a transposed convolution
    own, other = (small, large) if a["transposed"] else (large, small)
    letters, moved = [f"i{at}" for at in range(rank)], [f"v{at}" for at in range(rank)]
    images, inputs = w.shapes[n.inputs[0]][:2]  # several of one sample, where an axis such as time was joined to it
    outputs = target.shape[1]
    lines = [f"for (int b = 0; b < {images}; b++)", f"for (long p = 0; p < {len(kept[0])}; p++) {{",
             f"const float x = {values}[p];",
             f"const float *from = {x} + (b * {inputs}L + {tables[0]}[p]) * {math.prod(small)};",
             f"float *to = {target.place} + (b * {outputs}L + {tables[1]}[p]) * {math.prod(large)};"]  # fmt: skip
    for at in range(rank):
        step, shift = a["stride"][at], f"(int){tables[2 + at]}[p] * {a['dilation'][at]} - {a['padding'][at]}"
        lines += [
            f"for (int i{at} = 0; i{at} < {own[at]}; i{at}++) {{", f"const int v{at} = i{at} * {step} + {shift};",
            f"if (v{at} < 0 || v{at} >= {other[at]}) continue;",
        ]  # fmt: skip
    here, there = _flat(letters, own), _flat(moved, other)
    source, goal = (here, there) if a["transposed"] else (there, here)
    w.body += [*lines, f"to[{goal}] += x * from[{source}];", "}" * (rank + 1)]
    return target


def _pool(w: Writing, n: Node) -> View:
    """The largest or the mean of each window; windows may hang over the edge."""
    a, x, target = n.attributes, w.solid(n.inputs[0]), w.room(w.shapes[n.output])
    (images, channels, *sizes), places = w.shapes[n.inputs[0]], target.shape[2:]
    rank, dilation = len(sizes), a.get("dilation", [1] * len(sizes))
    inside = " && ".join(f"v{at} >= 0 && v{at} < {sizes[at]}" for at in range(rank))
    # a place of the padding counts in a mean if asked to, but never what lies beyond the padding
    counted = " && ".join(f"v{at} < {sizes[at] + a['padding'][at]}" for at in range(rank))
    value = f"from[{_flat([f'v{at}' for at in range(rank)], sizes)}]"
    take = f"if ({inside} && (n++ == 0 || {value} > sum)) sum = {value};"
    if n.op == "avg_pool":
        take = f"n += ({counted if a['count_padding'] else inside}); if ({inside}) sum += {value};"
    outer, letters = [f"i{at}" for at in range(rank)], [f"k{at}" for at in range(rank)]
    start = ["float sum = 0.0f;", "int n = 0;"]
    reach = [(p - 1) * s + (k - 1) * d for p, s, k, d in zip(places, a["stride"], a["kernel"], dilation)]
    if n.op == "max_pool" and not any(a["padding"]) and all(r < size for r, size in zip(reach, sizes)):
        # no window hangs over, so that nothing has to be asked before a number is taken
        corner = _flat([f"{i} * {s}" for i, s in zip(outer, a["stride"])], sizes)
        start, take = [f"float sum = from[{corner}];"], f"const float x = {value}; sum = x > sum ? x : sum;"
    lines = [f"for (int o = 0; o < {images * channels}; o++)", *_heads(places, outer), "{",
             f"const float *from = {x} + o * {math.prod(sizes)};", *start,
             *_heads(a["kernel"], letters), "{"]  # fmt: skip
    for at in range(rank):
        first = f"i{at} * {a['stride'][at]} + k{at} * {dilation[at]} - {a['padding'][at]}"
        lines.append(f"const int v{at} = {first};")
    answer = "sum" if n.op == "max_pool" else "sum / (float)n"
    goal = f"{target.place}[o * {math.prod(places)} + {_flat(outer, places)}]"
    w.body += [*lines, take, "}", f"{goal} = {answer};", "}"]
    return target


def _heads(sizes: Sequence[int], letters: Sequence[str]) -> list[str]:
    return [f"for (int {i} = 0; {i} < {n}; {i}++)" for i, n in zip(letters, sizes)]


def _adaptive(w: Writing, n: Node) -> View:
    """An axis at a time: the mean or the largest from the floor of a share to the ceiling of the next."""
    view, best = w.view(n.inputs[0]), n.op == "adaptive_max_pool"
    rank = len(view.shape)
    for axis, count in enumerate(n.attributes["size"], start=rank - len(n.attributes["size"])):
        size = view.shape[axis]
        target = w.room((*view.shape[:axis], count, *view.shape[axis + 1 :]))
        letters = [f"i{at}" for at in range(rank)]
        own = [letter if at != axis else "k" for at, letter in enumerate(letters)]
        here = letters[axis] if count > 1 else "0"
        start, stop = f"{here} * {size} / {count}", f"(({here} + 1) * {size} + {count - 1}) / {count}"
        take = f"fmaxf(all, {view.at(own)})" if best else f"all + {view.at(own)}"
        inner = f"const int a = {start}, b = {stop}; float all = {'-INFINITY' if best else '0.0f'};"
        inner += f" for (int k = a; k < b; k++) all = {take};"
        last = f"{target.at(letters)} = all{'' if best else ' / (float)(b - a)'};"
        w.body.append(f"{loops(target.shape, letters)} {{ {inner} {last} }}")
        view = target
    return view


def _interpolate(w: Writing, n: Node) -> View:
    """An axis at a time, by tables of neighbours and shares."""
    view, a = w.view(n.inputs[0]), n.attributes
    for place, count in enumerate(a["size"]):
        axis = len(view.shape) - len(a["size"]) + place
        size, scale = view.shape[axis], a["scales"][place] if a.get("scales") else None
        if a["mode"] == "nearest":
            step = np.float32(1 / scale if scale else size / count)
            places = np.minimum((np.arange(count, dtype=np.float32) * step).astype(np.int64), size - 1)
            view = taken(w, view, axis, places)
        elif size != count or scale:
            source = sources(size, count, scale, a["align_corners"])
            low = np.minimum(source.astype(np.int64), size - 1)
            shape = (count, *[1] * (len(view.shape) - axis - 1))
            share = View.solid(w.constant("float", (source - low).astype(np.float32)), shape)
            first, second = (taken(w, view, axis, np.minimum(low + more, size - 1)) for more in (0, 1))
            w.body.append(assign(first, "{0} * (1.0f - {2}) + {1} * {2}", first, second, share))
            view = first
    return view


def _index_select(w: Writing, n: Node) -> View:
    if n.inputs[1] not in w.tensors:
        return _index(w, n)
    known = np.asarray(w.tensors[n.inputs[1]]).astype(np.int64)
    return taken(w, w.view(n.inputs[0]), n.attributes["axis"], known)


def _within(index: str, size: int) -> str:
    """A whole number that is an index: counted from the end where it is negative, and never outside."""
    return f"fewer_place({index}, {size})"


def _indexed(view: View, axes: Sequence[int], indices: Sequence[View]) -> tuple[tuple[int, ...], list[str], str]:
    """What indices along some axes pick: its shape, the letters of its axes, and the number of the value."""
    axes = [axis % len(view.shape) for axis in axes]
    wide = broadcast(*(index.shape for index in indices))
    together = max(axes) - min(axes) < len(axes)
    before = min(axes) if together else 0  # where the axes of the indices are in the answer
    others = [n for axis, n in enumerate(view.shape) if axis not in axes]
    shape = (*others[:before], *wide, *others[before:])
    letters = [f"i{at}" for at in range(len(shape))]
    inside = letters[before : before + len(wide)]
    rest = iter([*letters[:before], *letters[before + len(wide) :]])
    found = {axis: index.widened(wide).at(inside) for axis, index in zip(axes, indices)}
    own = [_within(found[axis], n) if axis in found else next(rest) for axis, n in enumerate(view.shape)]
    return shape, letters, view.at(own)


def _index(w: Writing, n: Node) -> View:
    """Numbers at places that other values say, along some axes."""
    indices = [w.view(name) for name in n.inputs[1:]]
    axes = n.attributes["axes"] if n.op == "index" else [n.attributes["axis"]]
    shape, letters, source = _indexed(w.view(n.inputs[0]), axes, indices)
    target = w.room(shape)
    w.body.append(f"{loops(shape, letters)} {target.at(letters)} = {source};")
    return target


def _index_put(w: Writing, n: Node) -> View:
    target, values = w.room(w.shapes[n.output]), w.view(n.inputs[1])
    w.body.append(assign(target, "{0}", w.view(n.inputs[0])))
    shape, letters, goal = _indexed(target, n.attributes["axes"], [w.view(name) for name in n.inputs[2:]])
    sign = "+=" if n.attributes["add"] else "="
    w.body.append(f"{loops(shape, letters)} {goal} {sign} {values.widened(shape).at(letters)};")
    return target


def _gather(w: Writing, n: Node) -> View:
    view, target = w.view(n.inputs[0]), w.room(w.shapes[n.output])
    index, axis = w.view(n.inputs[1]).widened(target.shape), n.attributes["axis"] % len(target.shape)
    letters = [f"i{at}" for at in range(len(target.shape))]
    own = [_within(index.at(letters), view.shape[axis]) if at == axis else i for at, i in enumerate(letters)]
    w.body.append(f"{loops(target.shape, letters)} {target.at(letters)} = {view.at(own)};")
    return target


_SCATTER = {"set": "{0} = {1}", "add": "{0} += {1}", "prod": "{0} *= {1}", "amax": "{0} = fmaxf({0}, {1})",
            "amin": "{0} = fminf({0}, {1})"}  # fmt: skip


def _scatter(w: Writing, n: Node) -> View:
    target = w.room(w.shapes[n.output])
    w.body.append(assign(target, "{0}", w.view(n.inputs[0])))
    index, source = w.view(n.inputs[1]), w.view(n.inputs[2])
    axis, letters = n.attributes["axis"] % len(target.shape), [f"i{at}" for at in range(len(target.shape))]
    own = [_within(index.at(letters), target.shape[axis]) if at == axis else i for at, i in enumerate(letters)]
    line = _SCATTER[n.attributes.get("mode", "add")].format(target.at(own), source.at(letters))
    w.body.append(f"{loops(index.shape, letters)} {line};")
    return target


def _arange(w: Writing, n: Node) -> View:
    target, a = w.room(w.shapes[n.output]), n.attributes
    line = f"{target.place}[i] = {number(a['start'])} + {number(a['step'])} * (float)i;"
    w.body.append(f"for (int i = 0; i < {target.shape[0]}; i++) {line}")
    return target


PLACES: dict[str, Operation] = {
    "conv": _conv, "max_pool": _pool, "avg_pool": _pool, "adaptive_avg_pool": _adaptive, "adaptive_max_pool": _adaptive,
    "interpolate": _interpolate, "index_select": _index_select, "index": _index, "index_put": _index_put,
    "gather": _gather,
    "scatter": _scatter, "scatter_add": _scatter, "arange": _arange,
}  # fmt: skip
