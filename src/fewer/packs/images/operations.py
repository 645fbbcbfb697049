"""What a program does to images, in the few operations that C knows: convolutions, maps place by place, pools.

Norms are folded into the convolution before them, and sums and activations into the operation that makes what they
read, where nobody else reads it. Axes are always (channels, depth, height, width): images of fewer axes have a depth or
height of 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fewer.packs.program import Node
from fewer.packs.runtime.chain import NOTHING, Activation, Scale, stage_of
from fewer.packs.runtime.layers import between
from fewer.packs.runtime.ops import Array
from fewer.packs.shapes.rules import Shape

__all__ = ["Convolution", "Join", "Map", "Operation", "Pool", "Resize", "Three", "able", "lowered"]

Three = tuple[int, int, int]

_LONGEST_STRIDE = 8  # an image has a phase for each place of a stride; a file may claim any number


@dataclass(frozen=True)
class Convolution:
    """activation(W * source + bias + added)."""

    source: str
    target: str
    weight: Array  # (outputs, inputs of a group, depth, height, width)
    bias: Array
    stride: Three
    padding: Three
    dilation: Three
    groups: int
    added: str = ""
    activation: Activation = NOTHING


@dataclass(frozen=True)
class Map:
    """activation((source + added) * factor + shift), place by place."""

    source: str
    target: str
    factor: Array | None = None  # by channel
    shift: Array | None = None
    added: str = ""
    activation: Activation = NOTHING


@dataclass(frozen=True)
class Pool:
    """The largest or the mean of each window."""

    source: str
    target: str
    window: Three
    stride: Three
    padding: Three
    dilation: Three
    mean: bool
    count_padding: bool = False


@dataclass(frozen=True)
class Join:
    """Channels of several values, one after the other."""

    sources: tuple[str, ...]
    target: str


@dataclass(frozen=True)
class Resize:
    """Along each axis the places below, and the shares of the next ones; without shares the places alone."""

    source: str
    target: str
    low: tuple[Array, ...]
    share: tuple[Array | None, ...]


Operation = Convolution | Map | Pool | Join | Resize


def _three(values: Sequence[int], filler: int) -> Three:
    first, second, third = (*(filler,) * (3 - len(values)), *values)
    return first, second, third


def _weights(node: Node, tensors: Mapping[str, Array]) -> list[Array] | None:
    """The constants that follow the first input, if all are there and of single precision."""
    found = [tensors.get(name) for name in node.inputs[1:]]
    known = [value for value in found if value is not None and value.dtype == np.float32]
    return known if len(known) == len(found) else None


def able(node: Node, tensors: Mapping[str, Array], shapes: Mapping[str, Shape]) -> bool:
    """Whether C knows what a node does to images of these shapes."""
    if not node.inputs or node.inputs[0] not in shapes or node.inputs[0] in tensors:
        return False
    shape, values = shapes[node.inputs[0]], node.attributes
    rank = len(shape) - 2
    if not 1 <= rank <= 3 or len(shapes[node.output]) != len(shape) or 0 in shape or 0 in shapes[node.output]:
        return False
    match node.op:
        case "conv":
            return _convolves(node, tensors, rank)
        case "batch_norm":
            return bool(_weights(node, tensors)) and all(tensors[name].shape == shape[1:2] for name in node.inputs[1:])
        case "max_pool" | "avg_pool":
            return not values["ceil"] and len(values["kernel"]) == rank and min(values["kernel"]) >= 1
        case "adaptive_avg_pool" | "interpolate":
            return len(values["size"]) == rank and _resizes(node, shape)
        case "mean":
            return values["keep"] and sorted(axis % len(shape) for axis in values["axes"]) == list(range(2, len(shape)))
        case "concat":
            same = all(name not in tensors and shapes[name][2:] == shape[2:] for name in node.inputs)
            return values["axis"] % len(shape) == 1 and same
        case "add" if len(node.inputs) == 2 and node.inputs[1] not in tensors:
            return shapes[node.inputs[1]] == shape == shapes[node.output]
    stage = stage_of(node, tensors)
    return isinstance(stage, Scale) and stage.size == 1


def _resizes(node: Node, shape: Shape) -> bool:
    values = node.attributes
    if node.op == "interpolate":
        return values["mode"] in ("nearest", "linear")
    return all(s and not n % s for n, s in zip(shape[2:], values["size"]))


def _convolves(node: Node, tensors: Mapping[str, Array], rank: int) -> bool:
    values, constants = node.attributes, _weights(node, tensors)
    if not constants or values["transposed"]:
        return False
    stride, padding, dilation = (list(values[name]) for name in ("stride", "padding", "dilation"))
    proper = len(stride) == len(padding) == len(dilation) == rank == constants[0].ndim - 2
    bounded = min(*stride, *dilation, values["groups"]) >= 1 and min(padding) >= 0 and max(stride) <= _LONGEST_STRIDE
    return proper and bounded and 0 not in constants[0].shape


def lowered(
    nodes: Sequence[Node], tensors: Mapping[str, Array], shapes: Mapping[str, Shape], kept: set[str]
) -> list[Operation]:
    """The operations of nodes that are all able; `kept` are the values that others read, which must stay."""
    readers: dict[str, int] = dict.fromkeys(kept, 1)
    for node in nodes:
        for name in node.inputs:
            readers[name] = readers.get(name, 0) + 1
    found: list[Operation] = []
    for node in nodes:
        if not _fused(found, node, tensors, readers):
            found.append(_operation(node, tensors, shapes))
    return found


def _fused(found: list[Operation], node: Node, tensors: Mapping[str, Array], readers: Mapping[str, int]) -> bool:
    """Whether an earlier operation could take the node over."""
    made = {
        one.target: place for place, one in enumerate(found)
        if isinstance(one, Convolution | Map) and one.activation == NOTHING and readers[one.target] == 1
    }  # fmt: skip
    if node.op == "add" and len(node.inputs) == 2 and node.inputs[1] not in tensors:
        return _summed(found, node, made)
    place = made.get(node.inputs[0])
    if place is None:
        return False
    one = found[place]
    if not isinstance(one, Convolution | Map):
        return False
    if node.op == "batch_norm" and isinstance(one, Convolution) and not one.added:
        factor, shift = _norm(node, tensors)
        weight = one.weight * factor.reshape(-1, 1, 1, 1, 1)
        found[place] = replace(one, weight=weight, bias=one.bias * factor + shift, target=node.output)
        return True
    stage = stage_of(node, tensors)
    if isinstance(stage, Scale) and stage.activations:
        found[place] = replace(one, activation=stage.activations[0], target=node.output)
        return True
    if isinstance(stage, Scale) and isinstance(one, Map) and not one.added:
        return _scaled(found, place, one, stage, node.output)
    return False


def _scaled(found: list[Operation], place: int, one: Map, stage: Scale, target: str) -> bool:
    """A factor and a shift after another, which become one."""
    if one.factor is None or one.shift is None:
        return False
    factor, shift = (value.astype(np.float64) for value in (one.factor, one.shift))
    shift = (shift - stage.centre) * stage.factor + stage.shift
    factor = factor * stage.factor
    found[place] = replace(one, factor=factor.astype(np.float32), shift=shift.astype(np.float32), target=target)
    return True


def _summed(found: list[Operation], node: Node, made: Mapping[str, int]) -> bool:
    """A sum goes to the later of the two convolutions whose results it adds."""
    places = []
    for name in node.inputs:
        one = found[made[name]] if name in made else None
        if isinstance(one, Convolution) and not one.added:
            places.append((made[name], name))
    if not places or node.inputs[0] == node.inputs[1]:
        return False
    place, name = max(places)
    other = node.inputs[1] if node.inputs[0] == name else node.inputs[0]
    last = found[place]
    if not isinstance(last, Convolution) or other in {one.target for one in found[place:]}:
        return False  # it is made later
    found[place] = replace(last, added=other, target=node.output)
    return True


def _norm(node: Node, tensors: Mapping[str, Array]) -> tuple[Array, Array]:
    """Batch norm as a factor and a shift by channel."""
    mean, variance, *affine = (tensors[name].astype(np.float64) for name in node.inputs[1:])
    factor = 1 / np.sqrt(variance + node.attributes["epsilon"]) * (affine[0] if affine else 1.0)
    shift = (affine[1] if len(affine) > 1 else 0.0) - mean * factor
    return factor.astype(np.float32), shift.astype(np.float32)


def _operation(node: Node, tensors: Mapping[str, Array], shapes: Mapping[str, Shape]) -> Operation:
    source, target, values = node.inputs[0], node.output, node.attributes
    shape = shapes[source]
    match node.op:
        case "conv":
            weight, *rest = [tensors[name] for name in node.inputs[1:]]
            filled = weight.reshape(*weight.shape[:2], *_three(weight.shape[2:], 1))
            bias = rest[0] if rest else np.zeros(len(weight), np.float32)
            stride, dilation = _three(values["stride"], 1), _three(values["dilation"], 1)
            return Convolution(
                source, target, filled, bias, stride, _three(values["padding"], 0), dilation, values["groups"]
            )
        case "max_pool" | "avg_pool":
            sizes = _three(values["kernel"], 1), _three(values["stride"], 1), _three(values["padding"], 0)
            dilation = _three(values.get("dilation", (1,) * len(values["kernel"])), 1)
            mean = node.op == "avg_pool"
            return Pool(source, target, *sizes, dilation, mean, mean and values["count_padding"])
        case "adaptive_avg_pool" | "mean":
            size = shapes[target][2:]
            window = _three([n // s for n, s in zip(shape[2:], size)], 1)
            return Pool(source, target, window, window, (0, 0, 0), (1, 1, 1), True)
        case "interpolate":
            return _resize(node, shape[2:])
        case "batch_norm":
            return Map(source, target, *_norm(node, tensors))
        case "concat":
            return Join(node.inputs, target)
        case "add" if len(node.inputs) == 2 and node.inputs[1] not in tensors:
            return Map(source, target, added=node.inputs[1])
    stage, channels = stage_of(node, tensors), shape[1]
    assert isinstance(stage, Scale)
    if stage.activations:  # a node is one activation, or a scale without one
        return Map(source, target, activation=stage.activations[0])
    shift = stage.shift - stage.centre * stage.factor
    factor, shift = (np.full(channels, value.reshape(-1)[0], np.float32) for value in (stage.factor, shift))
    return Map(source, target, factor, shift)


def _resize(node: Node, size: Sequence[int]) -> Resize:
    values, rank = node.attributes, len(size)
    scales = values.get("scales") or (None,) * rank
    axes = [
        between(n, count, values["mode"], values["align_corners"], scale)
        for n, count, scale in zip(size, values["size"], scales)
    ]
    axes = [(np.zeros(1, np.int64), None)] * (3 - rank) + axes
    low, share = zip(*axes)
    return Resize(
        node.inputs[0], node.output, tuple(place.astype(np.uint32) for place in low),
        tuple(None if one is None else one.astype(np.float32) for one in share),
    )  # fmt: skip
