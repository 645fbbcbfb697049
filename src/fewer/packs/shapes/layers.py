"""The shapes that layers, pools and resizing make of the shapes they are given, and of their weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fewer.packs.runtime.recurrent import GATES
from fewer.packs.shapes.rules import SHAPES, Rule, Shape, broadcast, need

__all__ = ["RULES", "attention_scores", "matmul", "padded", "pooled", "transposed_full"]


def _linear(x: Shape, weight: Shape, bias: Shape | None = None) -> Shape:
    need(len(weight) == 2 and x[-1:] == weight[1:], "a matrix of weights with a column for every feature")
    need(bias in (None, weight[:1]), f"a bias of shape {weight[:1]}")
    return (*x[:-1], weight[0])


def matmul(a: Shape, b: Shape) -> Shape:
    """Products over the last two axes; a vector loses its axis."""
    need(bool(a) and bool(b), "vectors or matrices")
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    need(a[-1] == (b[-2] if len(b) > 1 else b[0]), "as many columns as the other has rows")
    return broadcast(a[:-2], b[:-2]) + rows + columns


def attention_scores(q: Shape, k: Shape, mask: Shape | None = None) -> Shape:
    """A score for every query and key."""
    need(min(len(q), len(k)) >= 2, "queries, keys and values with two axes or more")
    scores = matmul(q, (*k[:-2], k[-1], k[-2]))
    return scores if mask is None else broadcast(scores, mask)


def _attention(
    q: Shape, k: Shape, v: Shape, mask: Shape | None = None, *, causal: bool, scale: float | None = None
) -> Shape:
    need(len(v) >= 2, "queries, keys and values with two axes or more")
    return matmul(attention_scores(q, k, None if causal else mask), v)


def _recurrent(op: str) -> Rule:
    gates = GATES[op]

    def rule(
        x: Shape, w: Shape, v: Shape, *rest: Shape, reverse: bool, answer: str = "states", activation: str = "tanh"
    ) -> Shape:
        need(answer in ("states", "cell") and activation in ("tanh", "relu"), "states or cell, tanh or relu")
        need(len(x) == 3 and len(w) == len(v) == 2, "time, samples and features, and two matrices")
        rows, state = v
        need(rows % gates == 0 and w == (rows, x[2]), f"weights of {gates} gates for every feature")
        need(rest[:2] == ((rows,), (rows,)), f"two biases of shape {(rows,)}")
        projected = op == "lstm" and len(rest) in (3, 5)
        need(not projected or rest[-1] == (state, rows // gates), "a projection of every cell onto the state")
        need(projected or state == rows // gates, "as many cells as states")
        given = rest[2:-1] if projected else rest[2:]
        firsts = [(x[1], state), (x[1], rows // gates)][: len(given)]
        need(list(given) == firsts, f"first states of shapes {firsts}")
        return (*x[:2], state) if answer == "states" else (x[1], rows // gates)

    return rule


def _channels(x: Shape, parts: Sequence[Shape]) -> None:
    need(len(x) >= 2, "samples and channels")
    need(all(part == (x[1],) for part in parts), f"a number for each of {x[1]} channels")


def _batch_norm(x: Shape, *parts: Shape, epsilon: float) -> Shape:
    _channels(x, parts)
    return x


def _layer_norm(x: Shape, *affine: Shape, axes: int, epsilon: float) -> Shape:
    need(1 <= axes <= len(x), f"1 to {len(x)} axes")
    need(all(part == x[-axes:] for part in affine), f"weights of shape {x[-axes:]}")
    return x


def _group_norm(x: Shape, *affine: Shape, groups: int, epsilon: float) -> Shape:
    _channels(x, affine)
    need(groups >= 1 and x[1] % groups == 0, "groups that divide the channels")
    return x


def _places(x: Shape, *options: Sequence[int]) -> int:
    """How many axes a window has; every option speaks of each."""
    rank = len(options[0])
    need(rank >= 1 and len(x) == rank + 2, "samples, channels, and an axis for each of the window's")
    need(all(len(option) == rank for option in options), f"{rank} numbers in each option")
    return rank


def _windows(places: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Shape:
    need(min(*kernel, *stride, *dilation) >= 1, "windows and steps of at least 1")
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    need(all(n >= r for n, r in zip(places, reach)), f"a window that fits {tuple(places)}")
    return tuple((n - r) // s + 1 for n, r, s in zip(places, reach, stride))


def padded(x: Shape, padding: Sequence[int]) -> list[int]:
    """The places of an image with its padding."""
    need(min(padding) >= 0, "padding of at least 0")
    return [n + 2 * p for n, p in zip(x[2:], padding)]


def transposed_full(
    x: Shape, weight: Shape, stride: Sequence[int], dilation: Sequence[int], output_padding: Sequence[int]
) -> list[int]:
    """The places that a transposed convolution fills, before its padding is cut away."""
    sizes = zip(x[2:], stride, dilation, weight[2:], output_padding)
    return [(n - 1) * s + d * (k - 1) + 1 + e for n, s, d, k, e in sizes]


def _conv(
    x: Shape, weight: Shape, bias: Shape | None = None, *, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int, transposed: bool, output_padding: Sequence[int],
) -> Shape:  # fmt: skip
    _places(x, weight[2:], stride, padding, dilation, output_padding)
    inputs, outputs = (weight[0], weight[1] * groups) if transposed else (weight[1] * groups, weight[0])
    need(groups >= 1 and x[1] == inputs and inputs % groups == 0 == outputs % groups, "channels that fit the weights")
    need(bias in (None, (outputs,)), f"a bias of shape {(outputs,)}")
    need(min(*padding, *output_padding) >= 0, "padding of at least 0")
    if not transposed:
        return (x[0], outputs, *_windows(padded(x, padding), weight[2:], stride, dilation))
    need(min(*weight[2:], *stride, *dilation, *x[2:]) >= 1, "windows, steps and places of at least 1")
    full = transposed_full(x, weight, stride, dilation, output_padding)
    need(all(n > 2 * p for n, p in zip(full, padding)), "padding that leaves something")
    return (x[0], outputs, *(n - 2 * p for n, p in zip(full, padding)))


def pooled(
    x: Shape, *, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil: bool,
    dilation: Sequence[int] | None = None, count_padding: bool = False,
) -> tuple[Shape, Shape]:  # fmt: skip
    """Places with their padding, and windows; with `ceil` a last one may hang over."""
    dilation = [1] * len(kernel) if dilation is None else dilation
    _places(x, kernel, stride, padding, dilation)
    need(min(*kernel, *stride, *dilation) >= 1, "windows and steps of at least 1")
    places = padded(x, padding)
    for axis, (k, s, p, d) in enumerate(zip(kernel, stride, padding, dilation)):
        reach, n = d * (k - 1) + 1, places[axis]
        need(p < reach, "padding narrower than the window")
        count = (n - reach) // s + 1
        if ceil and (n - reach) % s and count * s < n - p:
            places[axis] = max(n, count * s + reach)
    return tuple(places), _windows(places, kernel, stride, dilation)


def _pool(x: Shape, **options: Sequence[int]) -> Shape:
    return x[:2] + pooled(x, **options)[1]  # type: ignore[arg-type]


def _resized(x: Shape, *, size: Sequence[int], **_: object) -> Shape:
    need(1 <= len(size) <= len(x) and min(size) >= 1, "a size of at least 1 for each of the last axes")
    need(min(x[-len(size) :]) >= 1, "something to resize")
    return (*x[: len(x) - len(size)], *size)


def _interpolate(
    x: Shape, *, size: Sequence[int], mode: str, align_corners: bool, scales: Sequence[float] | None = None
) -> Shape:
    need(scales is None or len(scales) == len(size), "a scale for every size")
    need(all(math.isfinite(scale) and scale > 0 for scale in scales or ()), "scales above 0")
    return _resized(x, size=size)


RULES: dict[str, Rule] = {
    **SHAPES, **{op: _recurrent(op) for op in GATES}, "linear": _linear, "matmul": matmul, "attention": _attention,
    "conv": _conv, "batch_norm": _batch_norm,
    "layer_norm": _layer_norm, "group_norm": _group_norm, "max_pool": _pool, "avg_pool": _pool,
    "adaptive_avg_pool": _resized, "adaptive_max_pool": _resized, "interpolate": _interpolate,
}  # fmt: skip
