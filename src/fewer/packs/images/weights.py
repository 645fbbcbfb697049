"""Weights of a convolution as C reads them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fewer.packs.images.choice import ROWS, taps_at_once
from fewer.packs.images.operations import Convolution
from fewer.packs.runtime.ops import Array

__all__ = ["dense_weights", "panel_weights", "sparse_weights"]


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


def panel_weights(one: Convolution, offsets: Array, unit: int, places: Array, *, images: int) -> tuple[Any, ...]:
    """Kept weights by taps that are copied at once, then by output channel; taps that nobody reads are not copied."""
    weight = one.weight.reshape(len(one.weight), -1)
    read = np.flatnonzero(weight.any(axis=0))
    read = read if len(read) else np.zeros(1, np.int64)
    deep = taps_at_once(len(read), -(-len(places) * unit * images // 16))
    parts = [weight[:, read[i : i + deep]] for i in range(0, len(read), deep)]
    kept = [np.nonzero(part) for part in parts]
    counts = np.concatenate([np.bincount(rows, minlength=len(weight)) for rows, _ in kept])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    taps = np.concatenate([columns for _, columns in kept]).astype(np.uint32)
    values = np.concatenate([part[found] for part, found in zip(parts, kept)])
    where = offsets.reshape(-1)[read].astype(np.uint32)
    return len(read), deep, unit, where, starts, taps, values, np.ascontiguousarray(one.bias), places
