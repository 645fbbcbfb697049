"""Convolutions of stride 1 in C: the sums of an output channel lie flat while its kept weights pass.

A padded image laid out flat has the neighbour of a place at one distance wherever the place lies, so that a kept weight
is one distance, one number and one loop without conditions, which compilers make vectors of. What is computed between
the rows is left behind when the sums are copied.
"""

from __future__ import annotations

import math

import numpy as np

from fewer.packs.export.c_ops import Writing
from fewer.packs.export.c_views import View, assign, number
from fewer.packs.program import Node

__all__ = ["ADD", "APART", "flat_convolution"]

# A function of its own, whose arguments a compiler knows to be apart; where it is inlined gcc 12 gathers instead. On
# ordinary computers gcc makes it for several processors whatever its options are, and the right one is chosen when the
# program starts; -DFEWER_PLAIN leaves that out.
APART = """\
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && !defined(FEWER_PLAIN)
#define FEWER_APART \\
    __attribute__((noinline, optimize("O3"), target_clones("avx512f", "avx2", "default")))
#elif defined(__GNUC__)
#define FEWER_APART __attribute__((noinline))
#else
#define FEWER_APART
#endif
"""
ADD = """\
FEWER_APART static void fewer_add(float *restrict to, const float *restrict from, float w, int count) {
    for (int i = 0; i < count; i++) to[i] += w * from[i];
}
"""


def _unsigned(largest: int) -> str:
    return "unsigned char" if largest < 256 else "unsigned short" if largest < 65536 else "unsigned long"


def flat_convolution(w: Writing, n: Node) -> View:
    """The convolution of a node whose weights are constants, whose strides are 1 and which is not transposed."""
    a, weight = n.attributes, w.tensors[n.inputs[1]]
    (_, channels, *small), (_, outputs, *large) = w.shapes[n.inputs[0]], w.shapes[n.output]
    sizes = [size + 2 * pad for size, pad in zip(small, a["padding"])]
    source, target = _padded(w, n.inputs[0], (1, channels, *sizes), a["padding"]), w.room(w.shapes[n.output])
    steps = View.solid("", sizes).strides
    kept = np.nonzero(weight)
    own = weight.shape[0] // a["groups"]
    offsets = (kept[1] + kept[0] // own * weight.shape[1]) * math.prod(sizes)
    for axis, (step, gap) in enumerate(zip(steps, a["dilation"])):
        offsets = offsets + kept[2 + axis] * (gap * step)
    starts = np.concatenate([[0], np.cumsum(np.bincount(kept[0], minlength=outputs))])
    count = 1 + sum((size - 1) * step for size, step in zip(large, steps))
    begin = w.constant(_unsigned(int(starts[-1])), starts)
    place = w.constant(_unsigned(int(np.max(offsets, initial=0))), offsets)
    bias = w.constant("float", w.tensors[n.inputs[2]]) + "[o]" if len(n.inputs) > 2 else number(0.0)
    sums = w.room((count,))
    inside = View(sums.place, tuple(large), steps)
    whole = View(f"({target.place} + (long)o * {math.prod(large)})", *_solid(large))
    values = w.constant("float", weight[kept])
    w.body += [
        f"for (int o = 0; o < {outputs}; o++) {{",
        f"for (int i = 0; i < {count}; i++) {sums.place}[i] = {bias};",
        f"for (unsigned long p = {begin}[o]; p < {begin}[o + 1]; p++)",
        f"fewer_add({sums.place}, {source} + {place}[p], {values}[p], {count});",
        assign(whole, "{0}", inside),
        "}",
    ]
    return target


def _solid(shape: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(shape), View.solid("", shape).strides


def _padded(w: Writing, name: str, shape: tuple[int, ...], padding: list[int]) -> str:
    """A pointer to the image with zeros around it."""
    if not any(padding):
        return w.solid(name)
    room, view = w.room(shape), w.view(name)
    first = sum(pad * step for pad, step in zip(padding, room.strides[2:]))
    w.body.append(f"memset({room.place}, 0, {math.prod(shape)} * sizeof(float));")
    w.body.append(assign(View(room.place, view.shape, room.strides, first), "{0}", view))
    return room.place
