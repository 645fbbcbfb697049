"""Sparse convolutions: every kept weight adds one shifted image, read in place from the flat padded input."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from fewer.packs.program import Node
from fewer.packs.runtime.chain import NOTHING, kernels
from fewer.packs.runtime.ops import Array, allowed

__all__ = ["sparse_convolution"]


def pays(kept: float, outputs: int) -> bool:
    """Whether a share of kept weights is small enough: numpy's product has to copy every window first, which
    costs as much as 20 / outputs of the weights do here, and multiplies about three times as fast."""
    return kept < 0.35 + 20 / outputs


def sparse_convolution(node: Node, tensors: Mapping[str, Array]) -> Callable[[Array], Array] | None:
    """The convolution of a node as a function of its input, or None where dense serves better."""
    compiled, options = kernels(), node.attributes
    if compiled is None or options["transposed"] or any(name not in tensors for name in node.inputs[1:]):
        return None
    weight = tensors[node.inputs[1]]
    stride, padding, dilation = (list(options[name]) for name in ("stride", "padding", "dilation"))
    rank, groups = weight.ndim - 2, options["groups"]
    proper = len(stride) == len(padding) == len(dilation) == rank >= 1 and min(*stride, *dilation, groups) >= 1
    if not proper or weight.dtype != np.float32 or min(padding) < 0 or weight.shape[0] % groups or 0 in weight.shape:
        return None
    # a stride computes places that are then thrown away
    if not pays(np.count_nonzero(weight) * math.prod(stride) / weight.size, len(weight)):
        return None
    bias = tensors[node.inputs[2]] if len(node.inputs) > 2 else np.zeros(len(weight), np.float32)
    kept = np.nonzero(weight)
    starts = np.concatenate([[0], np.cumsum(np.bincount(kept[0], minlength=len(weight)))]).astype(np.uint32)
    channels = kept[1] + kept[0] // (len(weight) // groups) * weight.shape[1]
    reach = [d * (k - 1) for k, d in zip(weight.shape[2:], dilation)]
    values, biases = weight[kept], np.ascontiguousarray(bias)

    def call(x: Array) -> Array:
        if x.ndim != rank + 2 or x.shape[1] != weight.shape[1] * groups:
            raise ValueError(f"an input of shape {x.shape} for weights of {weight.shape}")
        places = [n + 2 * p for n, p in zip(x.shape[2:], padding)]
        count = [n - r for n, r in zip(places, reach)]
        if min(count) < 1:
            raise ValueError(f"a window of {[r + 1 for r in reach]} on {places}")
        steps = [math.prod(places[axis + 1 :]) for axis in range(rank)]
        offsets = channels * math.prod(places)
        for axis in range(rank):
            offsets = offsets + kept[2 + axis] * (dilation[axis] * steps[axis])
        if math.prod(places) * x.shape[1] >= 2**32:
            raise ValueError(f"an image of {places} places, too many for 32-bit offsets")
        length = count[0] * steps[0]
        # the last rows of windows run over the end of the image; what they make is cut away below
        flat = np.zeros(x.shape[1] * math.prod(places) + sum(r * s for r, s in zip(reach[1:], steps[1:])), np.float32)
        inside = flat[: x.shape[1] * math.prod(places)].reshape(x.shape[1], *places)
        target = (slice(None), *(slice(p, p + n) for p, n in zip(padding, x.shape[2:])))
        answer = np.empty(allowed((len(x), len(weight), *[-(-n // s) for n, s in zip(count, stride)])), np.float32)
        made = np.empty((len(weight), length), np.float32)
        cut = (slice(None), *(slice(0, n, s) for n, s in zip(count, stride)))
        for sample, out in zip(x, answer):
            inside[target] = sample
            compiled.spread(starts, offsets.astype(np.uint32), values, biases, flat, made, length, NOTHING)
            out[...] = made.reshape(len(weight), count[0], *places[1:])[cut]
        return answer

    return call
