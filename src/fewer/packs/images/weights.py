"""Weights of a convolution as C reads them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fewer.packs.images.choice import ROWS
from fewer.packs.images.operations import Convolution
from fewer.packs.runtime.ops import Array

__all__ = ["dense_weights", "sparse_weights"]


def sparse_weights(one: Convolution, offsets: Array) -> tuple[Array, ...]:
    """Kept weights by output channel, in the order of memory."""
    outputs, own = len(one.weight), len(one.weight) // one.groups
    kept = np.nonzero(one.weight)
    places = offsets[(kept[0] // own, *kept[1:])]
    starts = np.concatenate([[0], np.cumsum(np.bincount(kept[0], minlength=outputs))])
    return starts.astype(np.uint32), places.astype(np.uint32), one.weight[kept], np.ascontiguousarray(one.bias)


def dense_weights(one: Convolution, offsets: Array, unit: int, starts: Array) -> tuple[Any, ...]:
    """All weights, blocks of output channels side by side, filled up with zeros, and the runs of places."""
    groups, own = one.groups, len(one.weight) // one.groups
    blocks, taps = -(-own // ROWS), math.prod(one.weight.shape[1:])
    weights = np.zeros((groups, blocks * ROWS, taps), np.float32)
    weights[:, :own] = one.weight.reshape(groups, own, taps)
    bias = np.zeros((groups, blocks * ROWS), np.float32)
    bias[:, :own] = one.bias.reshape(groups, own)
    packed = weights.reshape(groups, blocks, ROWS, taps).swapaxes(2, 3)
    return groups, taps, unit, offsets.reshape(-1).astype(np.uint32), np.ascontiguousarray(packed), bias, starts
