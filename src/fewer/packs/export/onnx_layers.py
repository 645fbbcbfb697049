"""Arithmetic, layers, pools and reductions in ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.export.onnx_graph import Converter, Graph, renamed
from fewer.packs.program import Node

__all__ = ["LAYERS"]


def _sides(g: Graph, n: Node) -> list[str]:
    """Both inputs of an operation in one element type; a number takes the type of the other side."""
    left, right = n.attributes.get("left"), n.attributes.get("right")
    if left is None and right is None:
        return g.alike(n.inputs) if n.op != "div" else [g.cast(name, g.dtype(n.output)) for name in n.inputs]
    given, own, dtype = left if right is None else right, g.dtype(n.inputs[0]), g.dtype(n.output)
    if dtype == np.bool_:  # compared: in the type of the value, unless the number has a fraction that it cannot hold
        dtype = (
            own
            if own.kind == "f"
            else np.dtype(np.int64 if not isinstance(given, float) or given.is_integer() else np.float32)
        )
    name = g.cast(n.inputs[0], dtype)
    return [g.constant(left, dtype), name] if left is not None else [name, g.constant(right, dtype)]


def _binary(op: str, **fixed: Any) -> Converter:
    return lambda g, n: g.node(op, _sides(g, n), output=n.output, **fixed)


def _logical(op: str) -> Converter:
    def call(g: Graph, n: Node) -> object:
        numbers = [n.attributes.get(side) for side in ("left", "right")]
        given = [g.constant(bool(number), np.bool_) for number in numbers if number is not None]
        return g.node(op, [*(g.cast(name, np.bool_) for name in n.inputs), *given], output=n.output)

    return call


def _whole(g: Graph, n: Node) -> bool:
    return g.dtype(n.output).kind in "iu"


def _remainder(g: Graph, n: Node) -> object:
    a, b = _sides(g, n)
    if _whole(g, n):
        return g.node("Mod", [a, b], output=n.output)
    whole = g.node("Floor", [g.node("Div", [a, b])])
    return g.node("Sub", [a, g.node("Mul", [whole, b])], output=n.output)


def _floor_divide(g: Graph, n: Node) -> object:
    a, b = _sides(g, n)
    if _whole(g, n):
        return g.node("Div", [g.node("Sub", [a, g.node("Mod", [a, b])]), b], output=n.output)
    return g.node("Floor", [g.node("Div", [a, b])], output=n.output)


def _atan2(g: Graph, n: Node) -> object:
    y, x = _sides(g, n)
    zero, turn = g.constant(0, g.dtype(n.output)), g.constant(math.pi, g.dtype(n.output))
    half = g.node("Where", [g.node("Less", [y, zero]), g.node("Neg", [turn]), turn])
    side = g.node("Where", [g.node("Less", [x, zero]), half, zero])
    return g.node("Add", [g.node("Atan", [g.node("Div", [y, x])]), side], output=n.output)


def _not_equal(g: Graph, n: Node) -> object:
    return g.node("Not", [g.node("Equal", _sides(g, n))], output=n.output)


def _where(g: Graph, n: Node) -> object:
    rest = list(n.inputs[1:])
    dtype = g.values[n.output].dtype
    parts = [
        g.constant(n.attributes[side], dtype) if n.attributes.get(side) is not None else g.cast(rest.pop(0), dtype)
        for side in ("left", "right")
    ]
    return g.node("Where", [g.cast(n.inputs[0], np.bool_), *parts], output=n.output)


def _clamp(g: Graph, n: Node) -> object:
    dtype = g.values[n.inputs[0]].dtype
    limits = [n.attributes.get("minimum"), n.attributes.get("maximum")]
    return g.node("Clip", [n.inputs[0], *("" if v is None else g.constant(v, dtype) for v in limits)], output=n.output)


def _elu(g: Graph, n: Node) -> object:
    a = n.attributes
    if a["input_scale"] != 1:
        raise UserError("elu with an input scale", "ELU or SELU, for an export to ONNX")
    curve = g.node("Elu", n.inputs, alpha=float(a["alpha"]))
    return g.node("Mul", [curve, g.constant(a["scale"], np.float32)], output=n.output)


def _cast(g: Graph, n: Node) -> object:
    kind = g.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(n.attributes["dtype"]))
    return g.node("Cast", n.inputs, output=n.output, to=kind)


def _linear(g: Graph, n: Node) -> object:
    weight = n.inputs[1]
    if weight in g.tensors:
        turned = f"{weight}:transposed"
        g.tensors[turned] = np.ascontiguousarray(g.tensors[weight].T)
    else:
        turned = g.node("Transpose", [weight], perm=[1, 0])
    if len(n.inputs) == 2:
        return g.node("MatMul", [n.inputs[0], turned], output=n.output)
    return g.node("Add", [g.node("MatMul", [n.inputs[0], turned]), n.inputs[2]], output=n.output)


def _earlier(g: Graph, q: str, k: str) -> str:
    """Which keys a query may see where none is later than itself."""
    if g.program.time is None:
        rows, columns = g.values[q].shape[-2], g.values[k].shape[-2]
        return g.constant(np.tril(np.ones((rows, columns), dtype=np.bool_)), np.bool_)
    last = [g.node("Slice", [g.node("Shape", [x]), g.constant([-2]), g.constant([-1])]) for x in (q, k)]
    one = g.onnx.numpy_helper.from_array(np.ones(1, dtype=np.float32))
    every = g.node("ConstantOfShape", [g.node("Concat", last, axis=0)], value=one)
    kind = g.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(np.bool_))
    return g.node("Cast", [g.node("Trilu", [every], upper=0)], to=kind)


def _attention(g: Graph, n: Node) -> object:
    q, k, v, *mask = n.inputs
    rank, a = g.rank(k), n.attributes
    scale = a.get("scale") if a.get("scale") is not None else 1 / math.sqrt(g.values[q].shape[-1])
    turned = g.node("Transpose", [k], perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = g.node("MatMul", [g.node("Mul", [q, g.constant(scale, np.float32)]), turned])
    if a["causal"]:
        mask = [_earlier(g, q, k)]
    if mask:
        boolean = a["causal"] or g.dtype(mask[0]) == np.bool_
        hidden = [mask[0], scores, g.constant(-np.inf, np.float32)]
        scores = g.node("Where", hidden) if boolean else g.node("Add", [scores, mask[0]])
    return g.node("MatMul", [g.node("Softmax", [scores], axis=-1), v], output=n.output)


def _conv(g: Graph, n: Node) -> object:
    a = n.attributes
    common = {
        "strides": a["stride"],
        "pads": [*a["padding"], *a["padding"]],
        "dilations": a["dilation"],
        "group": a["groups"],
    }
    if a["transposed"]:
        return g.node("ConvTranspose", n.inputs, output=n.output, output_padding=a["output_padding"], **common)
    return g.node("Conv", n.inputs, output=n.output, **common)


def _batch_norm(g: Graph, n: Node) -> object:
    x, mean, variance, *affine = n.inputs
    size = g.tensors[mean].size
    parts = (
        affine if len(affine) == 2 else [g.constant(np.ones(size), np.float32), g.constant(np.zeros(size), np.float32)]
    )
    return g.node(
        "BatchNormalization", [x, *parts, mean, variance], output=n.output, epsilon=float(n.attributes["epsilon"])
    )


def _layer_norm(g: Graph, n: Node) -> object:
    axes = n.attributes["axes"]
    shape = g.values[n.inputs[0]].shape[-axes:]
    parts = list(n.inputs[1:]) or [g.constant(np.ones(shape), np.float32)]
    epsilon = float(n.attributes["epsilon"])
    return g.node("LayerNormalization", [n.inputs[0], *parts], output=n.output, axis=-axes, epsilon=epsilon)


def _group_norm(g: Graph, n: Node) -> object:
    x, *affine = n.inputs
    shape, groups = g.values[x].shape, n.attributes["groups"]
    size = int(np.prod(shape[1:])) // groups
    flat = g.node("Reshape", [x, g.constant([0, groups, size])])
    ones = g.node("ConstantOfShape", [g.constant([size])], value=g.onnx.numpy_helper.from_array(np.ones(1, np.float32)))
    flat = g.node("LayerNormalization", [flat, ones], axis=-1, epsilon=float(n.attributes["epsilon"]))
    value = g.node("Reshape", [flat, g.constant([0, *shape[1:]])])
    for op, part in zip(("Mul", "Add"), affine):
        channels = g.node("Reshape", [part, g.constant([1, -1] + [1] * (len(shape) - 2))])
        value = g.node(op, [value, channels])
    return g.node("Identity", [value], output=n.output)


def _pool(op: str) -> Converter:
    def call(g: Graph, n: Node) -> object:
        a = n.attributes
        rest = {"dilations": a["dilation"]} if op == "MaxPool" else {"count_include_pad": int(a["count_padding"])}
        pads = [*a["padding"], *a["padding"]]
        sizes = zip(g.values[n.inputs[0]].shape[2:], a["kernel"], a["stride"], a["padding"], a.get("dilation", [1] * 9))
        floor = tuple((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in sizes)
        ceil = int(floor != g.values[n.output].shape[2:])  # asked for only where it changes anything
        return g.node(op, n.inputs, output=n.output, kernel_shape=a["kernel"], strides=a["stride"], pads=pads,
                      ceil_mode=ceil, **rest)  # fmt: skip

    return call


def _adaptive(pool: str, reduce: str) -> Converter:
    """A pool where sizes divide, else every window for itself, an axis at a time."""

    def call(g: Graph, n: Node) -> object:
        size, value = n.attributes["size"], n.inputs[0]
        places = g.values[value].shape[-len(size) :]
        if not any(a % b for a, b in zip(places, size)):
            kernel = [a // b for a, b in zip(places, size)]
            return g.node(pool, [value], output=n.output, kernel_shape=kernel, strides=kernel)
        for axis, (length, count) in enumerate(zip(places, size), start=-len(size)):
            bounds = [(i * length // count, -(-(i + 1) * length // count)) for i in range(count)]
            cuts = [[g.constant([at]) for at in (*bound, axis)] for bound in bounds]
            parts = [g.node(reduce, [g.node("Slice", [value, *cut]), cut[2]], keepdims=1) for cut in cuts]
            value = g.node("Concat", parts, axis=axis)
        return g.node("Identity", [value], output=n.output)

    return call


def _interpolate(g: Graph, n: Node) -> object:
    a = n.attributes
    rank = g.rank(n.inputs[0])
    axes = list(range(rank - len(a["size"]), rank))
    nearest = a["mode"] == "nearest"
    where = "asymmetric" if nearest else "align_corners" if a["align_corners"] else "half_pixel"
    if a.get("scales") and not a["align_corners"]:
        sizes = ["", g.constant(a["scales"], np.float32)]
    else:
        sizes = ["", "", g.constant(a["size"])]
    return g.node("Resize", [n.inputs[0], *sizes], output=n.output, axes=axes, mode=a["mode"],
                  coordinate_transformation_mode=where, nearest_mode="floor")  # fmt: skip


def _reduce(op: str) -> Converter:
    def call(g: Graph, n: Node) -> object:
        a, value = n.attributes, g.cast(n.inputs[0], g.dtype(n.output))
        return g.node(op, [value, g.constant(a["axes"])], output=n.output, keepdims=int(a["keep"]))

    return call


def _truth(op: str) -> Converter:
    def call(g: Graph, n: Node) -> object:
        number = g.node("Cast", [g.node("Cast", n.inputs, to=9)], to=1)
        most = g.node(op, [number, g.constant(n.attributes["axes"])], keepdims=int(n.attributes["keep"]))
        return g.node("Cast", [most], output=n.output, to=9)

    return call


def _arg(op: str) -> Converter:
    def call(g: Graph, n: Node) -> object:
        if n.attributes.get("axis") is None:
            raise UserError(f"{n.op} over all axes", "one axis, for an export to ONNX")
        return g.node(op, n.inputs, output=n.output, axis=n.attributes["axis"], keepdims=int(n.attributes["keep"]))

    return call


def _variance(g: Graph, n: Node) -> object:
    a, axes = n.attributes, g.constant(n.attributes["axes"])
    centred = g.node("Sub", [n.inputs[0], g.node("ReduceMean", [n.inputs[0], axes], keepdims=1)])
    mean = g.node("ReduceMean", [g.node("Mul", [centred, centred]), axes], keepdims=int(a["keep"]))
    count = math.prod(g.values[n.inputs[0]].shape[axis] for axis in a["axes"])
    return g.node("Mul", [mean, g.constant(count / (count - a["correction"]), np.float32)], output=n.output)


def _sort(place: int) -> Converter:
    def call(g: Graph, n: Node) -> object:
        a = n.attributes
        names = [n.output, f"{n.output}:unused"][:: 1 if place == 0 else -1]
        count = g.constant([g.values[n.inputs[0]].shape[a["axis"]]])
        return g.node("TopK", [n.inputs[0], count], output=names, axis=a["axis"], largest=int(a["descending"]))

    return call


_NAMES = {
    "relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "neg": "Neg",
    "abs": "Abs", "reciprocal": "Reciprocal", "sin": "Sin", "cos": "Cos", "erf": "Erf", "floor": "Floor",
    "ceil": "Ceil", "round": "Round", "sign": "Sign", "matmul": "MatMul",
    **{name: name.capitalize() for name in ["tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"]},
}  # fmt: skip
_PAIRS = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min",
    "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
}  # fmt: skip
_REDUCERS = {"sum": "ReduceSum", "mean": "ReduceMean", "amax": "ReduceMax", "amin": "ReduceMin", "prod": "ReduceProd"}


LAYERS: dict[str, Converter] = {
    **{ours: renamed(theirs) for ours, theirs in _NAMES.items()},
    **{ours: _binary(theirs) for ours, theirs in _PAIRS.items()},
    **{ours: _reduce(theirs) for ours, theirs in _REDUCERS.items()},
    "rsqrt": lambda g, n: g.node("Reciprocal", [g.node("Sqrt", n.inputs)], output=n.output),
    "log1p": lambda g, n: g.node("Log", [g.node("Add", [n.inputs[0], g.constant(1, np.float32)])], output=n.output),
    "expm1": lambda g, n: g.node("Sub", [g.node("Exp", n.inputs), g.constant(1, np.float32)], output=n.output),
    "trunc": lambda g, n: g.node(
        "Mul", [g.node("Sign", n.inputs), g.node("Floor", [g.node("Abs", n.inputs)])], output=n.output
    ),
    "fmod": _binary("Mod", fmod=1), "remainder": _remainder, "ne": _not_equal,
    "floor_divide": _floor_divide, "atan2": _atan2,
    **{f"logical_{name}": _logical(name.capitalize()) for name in ("and", "or", "xor", "not")},
    "where": _where, "clamp": _clamp, "cast": _cast, "elu": _elu, "gelu": renamed("Gelu", approximate="approximate"),
    "leaky_relu": renamed("LeakyRelu", slope="alpha"), "softmax": renamed("Softmax", axis="axis"),
    "log_softmax": renamed("LogSoftmax", axis="axis"), "linear": _linear, "attention": _attention, "conv": _conv,
    "batch_norm": _batch_norm, "layer_norm": _layer_norm, "group_norm": _group_norm, "max_pool": _pool("MaxPool"),
    "avg_pool": _pool("AveragePool"), "adaptive_avg_pool": _adaptive("AveragePool", "ReduceMean"),
    "adaptive_max_pool": _adaptive("MaxPool", "ReduceMax"), "interpolate": _interpolate, "any": _truth("ReduceMax"),
    "all": _truth("ReduceMin"), "argmax": _arg("ArgMax"), "argmin": _arg("ArgMin"), "var": _variance,
    "sort": _sort(0), "argsort": _sort(1),
    "cumsum": lambda g, n: g.node(
        "CumSum", [g.cast(n.inputs[0], g.dtype(n.output)), g.constant(n.attributes["axis"])], output=n.output
    ),
}  # fmt: skip
