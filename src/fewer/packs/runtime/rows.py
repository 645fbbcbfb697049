"""Softmax, layer norms, attention and products over the last axes in C, with numpy where C cannot serve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from fewer.packs.program import Node
from fewer.packs.runtime.chain import kernels
from fewer.packs.runtime.layers import OPERATIONS
from fewer.packs.runtime.ops import Array

__all__ = ["row_operation"]

_MANY = 1 << 18  # multiplications of a product, below which counting zeros costs more than it saves
_KINDS = {"softmax": 0, "log_softmax": 1, "layer_norm": 2}


def row_operation(node: Node, tensors: Mapping[str, Array]) -> Callable[..., Array] | None:
    """The node as a function of its inputs, or None where it is another operation or there are no kernels."""
    if kernels() is None:
        return None
    match node.op:
        case "softmax" | "log_softmax":
            return _shares(node.op, node.attributes["axis"])
        case "layer_norm" if node.attributes["axes"] == 1:
            return _norm(node.attributes["epsilon"])
        case "attention" if len(node.inputs) == 3 and not node.attributes["causal"]:
            return _attention(node.attributes.get("scale"))
        case "matmul":
            return product
    return None


def _shares(op: str, axis: int) -> Callable[[Array], Array]:
    compiled, kind, plain = kernels(), _KINDS[op], OPERATIONS[op]
    assert compiled is not None

    def call(x: Array) -> Array:
        found: Array | None = compiled.rows(kind, x, None, None, 0.0) if axis in (-1, x.ndim - 1) else None
        if found is not None:
            return found
        with np.errstate(all="ignore"):
            return plain(x, axis=axis)

    return call


def _norm(epsilon: float) -> Callable[..., Array]:
    compiled, kind, plain = kernels(), _KINDS["layer_norm"], OPERATIONS["layer_norm"]
    assert compiled is not None

    def call(x: Array, *affine: Array) -> Array:
        weight, bias = (*affine, None, None)[:2]
        found: Array | None = compiled.rows(kind, np.ascontiguousarray(x), weight, bias, epsilon)
        return plain(x, *affine, axes=1, epsilon=epsilon) if found is None else found

    return call


def _attention(scale: float | None) -> Callable[[Array, Array, Array], Array]:
    shares = _shares("softmax", -1)

    def call(q: Array, k: Array, v: Array) -> Array:
        factor = np.float32(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
        scores = np.matmul(q * factor, np.swapaxes(k, -1, -2))
        return np.asarray(np.matmul(shares(scores), v), dtype=q.dtype)

    return call


def product(left: Array, right: Array) -> Array:
    """The product of the last two axes; where one side is mostly zeros, those are left out."""
    compiled = kernels()
    assert compiled is not None
    found: Array | None = None
    if left.ndim > 1 and left.size * right.shape[-1] >= _MANY:
        found = compiled.product(np.ascontiguousarray(left), np.ascontiguousarray(right))
    return np.matmul(left, right) if found is None else found
