"""Chains of layers and what is elementwise between them, made ready for one call into C.

A unit that nothing feeds always says the same, which its readers' biases can take over; a unit that nobody reads
need not be computed. Both are common at high sparsity, and both are removed before the weights are laid out: by
columns for one sample (dense where that is faster, else in lanes or with columns of zero inputs skipped), by rows for
many.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np

from fewer.packs.program import Node
from fewer.packs.runtime.ops import Array, clamp, elu, gelu, leaky_relu, sigmoid

__all__ = ["Layer", "Scale", "Stage", "compiled_chain", "fit", "kernels", "pruned", "stage_of"]

_runtime: ModuleType | None
try:
    from fewer.packs import _runtime  # type: ignore[attr-defined, no-redef]
except ImportError:  # built without a compiler
    _runtime = None

Activation = tuple[int, float, float, float]
NOTHING: Activation = (0, 0.0, 0.0, 0.0)
_KINDS = {"relu": 1, "leaky_relu": 2, "elu": 3, "tanh": 4, "sigmoid": 5, "gelu": 6, "clamp": 8, "abs": 9}
_WIDEST, _MOST_AXES = 65535, 7
_IN_LANES = 16  # floats in a vector where C takes kept weights of sixteen rows at once


def kernels() -> ModuleType | None:
    """The compiled kernels, if they were built."""
    return _runtime


@dataclass(frozen=True)
class Layer:
    """activation(W x + b)."""

    weight: Array
    bias: Array
    activations: tuple[Activation, ...] = ()

    @property
    def width(self) -> int:
        """How many values come out."""
        return int(self.weight.shape[0])


@dataclass(frozen=True)
class Scale:
    """activation((x - centre) * factor + shift); a size of 1 serves every feature."""

    centre: Array = field(default_factory=lambda: np.zeros(1, np.float32))
    factor: Array = field(default_factory=lambda: np.ones(1, np.float32))
    shift: Array = field(default_factory=lambda: np.zeros(1, np.float32))
    activations: tuple[Activation, ...] = ()

    @property
    def size(self) -> int:
        """Of the features it speaks about, or 1 where it treats all alike."""
        return max(self.centre.size, self.factor.size, self.shift.size)

    @property
    def only_centres(self) -> bool:
        """Whether all it does is to subtract."""
        return not self.activations and bool((self.factor == 1).all()) and not self.shift.any()

    @property
    def only_activates(self) -> bool:
        """Whether it leaves the value to its activations as it is."""
        return bool((self.factor == 1).all()) and not self.centre.any() and not self.shift.any()


Stage = Layer | Scale


def stage_of(node: Node, tensors: Mapping[str, Array]) -> Stage | None:
    """What a node is in a chain, or None: a layer, a scale by constants, or an activation of its first input."""
    values = node.attributes
    if node.op == "linear" and all(name in tensors for name in node.inputs[1:]):
        weight = tensors[node.inputs[1]]
        if weight.dtype != np.float32 or weight.ndim != 2 or max(weight.shape) > _WIDEST:
            return None
        bias = tensors[node.inputs[2]] if len(node.inputs) > 2 else np.zeros(len(weight), np.float32)
        return Layer(weight, bias)
    if node.op in ("add", "sub", "mul", "div", "maximum", "minimum"):
        return _scale_of(node, tensors)
    if node.op not in _KINDS and node.op != "neg":
        return None
    if node.op == "neg":
        return Scale(factor=np.full(1, -1, np.float32))
    limits = values.get("minimum"), values.get("maximum")
    numbers = {
        "leaky_relu": (values.get("slope"), 0, 0),
        "elu": (values.get("alpha"), values.get("scale"), values.get("input_scale")),
        "clamp": (-np.inf if limits[0] is None else limits[0], np.inf if limits[1] is None else limits[1], 0),
    }.get(node.op, (0, 0, 0))
    kind = 7 if values.get("approximate") == "tanh" else _KINDS[node.op]
    a, b, c = (float(number or 0) for number in numbers)
    return Scale(activations=((kind, a, b, c),))


def _constant_of(node: Node, tensors: Mapping[str, Array]) -> Array | None:
    """The constant that a value is added to, multiplied by, ..., as a vector; None where there is none that fits."""
    if len(node.inputs) == 2 and node.inputs[1] in tensors:
        value = tensors[node.inputs[1]]
        # beside (features,) and (1, features) a constant could change the rank of the value
        row = value.ndim < 2 or (value.ndim == 2 and value.shape[0] == 1)
        return value.reshape(-1) if row and value.size and value.dtype == np.float32 else None
    left, right = node.attributes.get("left"), node.attributes.get("right")
    number = right if left is None else left
    return np.full(1, number, np.float32) if len(node.inputs) == 1 and number is not None else None


def _scale_of(node: Node, tensors: Mapping[str, Array]) -> Scale | None:
    vector = _constant_of(node, tensors)
    if vector is None:
        return None
    number = float(vector[0]) if vector.size == 1 else None
    match node.op, node.attributes.get("left") is None:
        case "add", _:
            return Scale(shift=vector)
        case "mul", _:
            return Scale(factor=vector)
        case "sub", True:
            return Scale(centre=vector)
        case "sub", False:
            return Scale(factor=np.full(1, -1, np.float32), shift=vector)
        case "div", True if (np.abs(vector) > 1e-37).all():
            return Scale(factor=(1 / vector).astype(np.float32))
        case "maximum", _ if number is not None:
            return Scale(activations=((_KINDS["clamp"], number, float(np.inf), 0.0),))
        case "minimum", _ if number is not None:
            return Scale(activations=((_KINDS["clamp"], float(-np.inf), number, 0.0),))
    return None


def joined(stages: list[Stage]) -> list[Stage]:
    """Activations put on the stage before them, and a centre and a factor made one."""
    merged: list[Stage] = []
    for stage in stages:
        last = merged[-1] if merged else None
        if last is not None and isinstance(stage, Scale) and stage.only_activates:
            merged[-1] = replace(last, activations=last.activations + stage.activations)
        elif isinstance(last, Scale) and isinstance(stage, Scale) and last.only_centres and not stage.centre.any():
            merged[-1] = replace(stage, centre=last.centre)
        else:
            merged.append(stage)
    return merged


def activated(x: Array, activations: tuple[Activation, ...]) -> Array:
    """The same activations as in C, in numpy."""
    for kind, a, b, c in activations:
        match kind:
            case 1:
                x = np.maximum(x, np.float32(0))
            case 2:
                x = leaky_relu(x, slope=a)
            case 3:
                x = elu(x, alpha=a, scale=b, input_scale=c)
            case 4:
                x = np.tanh(x)
            case 5:
                x = sigmoid(x)
            case 6 | 7:
                x = gelu(x, approximate="tanh" if kind == 7 else "none")
            case 8:
                x = clamp(x, minimum=a, maximum=b)
            case 9:
                x = np.abs(x)
    return x


def _kept_units(scale: Scale, keep: Array) -> Scale:
    parts = [part if part.size == 1 else part[keep] for part in (scale.centre, scale.factor, scale.shift)]
    return replace(scale, centre=parts[0], factor=parts[1], shift=parts[2])


def pruned(stages: list[Stage]) -> list[Stage]:
    """The same function without hidden units that nothing feeds or nobody reads."""
    stages = list(stages)
    places = [place for place, stage in enumerate(stages) if isinstance(stage, Layer)]
    changed = True
    while changed:
        changed = False
        for i, j in itertools.pairwise(places):
            first, second = stages[i], stages[j]
            assert isinstance(first, Layer) and isinstance(second, Layer)
            fed, read = first.weight.any(axis=1), second.weight.any(axis=0)
            constant = activated(first.bias, first.activations)
            for scale in stages[i + 1 : j]:
                assert isinstance(scale, Scale)
                constant = activated((constant - scale.centre) * scale.factor + scale.shift, scale.activations)
            silent = ~fed & np.isfinite(constant)
            keep = read & ~silent
            if keep.all():
                continue
            changed = True
            gone = silent & read
            extra = second.weight[:, gone].astype(np.float64) @ constant[gone]
            stages[i] = replace(first, weight=first.weight[keep], bias=first.bias[keep])
            stages[i + 1 : j] = [_kept_units(s, keep) for s in stages[i + 1 : j] if isinstance(s, Scale)]
            stages[j] = replace(second, weight=second.weight[:, keep], bias=(second.bias + extra).astype(np.float32))
    return stages


def _layout(layer: Layer, lanes: int, *, skips: bool) -> tuple[Any, ...]:
    """A layer as the compiled chain wants it."""
    outputs, inputs = layer.weight.shape
    rows, columns = np.nonzero(layer.weight)
    order = np.lexsort((rows, columns))
    kept, padded = len(rows), -(-outputs // 16) * 16
    # counted in vectors of a dense column: a kept weight of its own, half skipped after a ReLU, or many in lanes
    cost = 0.15 if lanes == _IN_LANES else 0.6 if skips else 1.2
    dense = -(-inputs // 4) * 4 * padded / lanes < kept * cost
    by_column = layer.weight[rows, columns][order]
    if dense:
        cells = np.zeros((-(-inputs // 4) * 4, padded), dtype=np.float32)
        cells[:inputs, :outputs] = layer.weight.T
        by_column = cells
    return (
        inputs, outputs, dense, kept, _starts(columns, inputs), rows[order].astype(np.uint16), by_column,
        _starts(rows, outputs), columns.astype(np.uint32), layer.weight[rows, columns],
        np.ascontiguousarray(layer.bias, dtype=np.float32), (layer.activations or (NOTHING,))[0],
    )  # fmt: skip


def _starts(places: Array, count: int) -> Array:
    return np.concatenate([[0], np.cumsum(np.bincount(places, minlength=count))]).astype(np.uint32)


def fit(stages: list[Stage], width: int) -> bool:
    """Whether every stage takes as many features as the one before it makes; a scale could also spread one feature."""
    for stage in stages:
        if isinstance(stage, Layer):
            if stage.weight.shape[1] != width or stage.bias.shape != (stage.width,):
                return False
            width = stage.width
        elif stage.size not in (1, width):
            return False
    return True


def compiled_chain(stages: list[Stage], shape: tuple[int, ...]) -> Any | None:
    """A callable for arrays (*shape) or (samples, *shape), or None where C cannot serve; it has at least a layer."""
    width, layers = int(np.prod(shape)), any(isinstance(stage, Layer) for stage in stages)
    if _runtime is None or not layers or not fit(stages, width) or len(shape) > _MOST_AXES:
        return None
    stages = pruned(joined(stages))
    _, lanes = _runtime.chosen()
    entries: list[tuple[Any, ...]] = []
    skips = False
    for stage in stages:
        if isinstance(stage, Layer):
            entries.append(_layout(stage, lanes, skips=skips))
            width = stage.width
        else:
            parts = (stage.centre, stage.factor, stage.shift)
            wide = [np.ascontiguousarray(np.broadcast_to(part, width), dtype=np.float32) for part in parts]
            entries.append((width, *wide, (stage.activations or (NOTHING,))[0]))
        nothing = [np.full(width, value, dtype=np.float32) for value in (0, 1, 0)]
        entries += [(width, *nothing, further) for further in stage.activations[1:]]
        skips = bool(stage.activations) and stage.activations[-1][0] == _KINDS["relu"]
    return _runtime.Chain(entries, tuple(shape), (width,))
