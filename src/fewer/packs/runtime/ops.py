"""Elementwise, shape, index and reducing operations of a program, in numpy.

Every operation is a function of its input arrays and its attributes by name, and answers as torch does.
`ops_layers` holds the layers; `OPERATIONS` there joins both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.packs.program import PackError

__all__ = ["ELEMENTWISE", "MOST_NUMBERS", "SHAPES", "Array", "allowed", "mean"]

Array = NDArray[Any]
MOST_NUMBERS = 1 << 31  # a value larger than this is a mistake or an attack


def allowed(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape, unless it asks for more memory than any value of a program needs."""
    if min(shape, default=0) < 0 or math.prod(shape) > MOST_NUMBERS:
        raise PackError(f"a value of shape {tuple(shape)}", f"at most {MOST_NUMBERS} numbers")
    return tuple(shape)


# a Chebyshev series of the error function on [-4, 4], beyond which it is 1 in float32; numpy has no erf
_NODES = np.cos(np.pi * (np.arange(64) + 0.5) / 64)
_ERF = np.polynomial.chebyshev.chebfit(_NODES, [math.erf(4 * node) for node in _NODES], 43)


def erf(x: Array) -> Array:
    """The error function, to 1e-9."""
    near = np.clip(np.asarray(x, dtype=np.float64) / 4, -1, 1)
    return np.asarray(np.polynomial.chebyshev.chebval(near, _ERF), dtype=x.dtype)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, small) / (1 + small), dtype=x.dtype)


def elu(x: Array, *, alpha: float, scale: float, input_scale: float) -> Array:
    """scale * x, or scale * alpha * (exp(input_scale * x) - 1) below 0; SELU with its two constants."""
    negative = np.float32(alpha * scale) * np.expm1(np.minimum(x, 0) * np.float32(input_scale))
    return np.where(x > 0, x * np.float32(scale), negative).astype(x.dtype, copy=False)


def gelu(x: Array, *, approximate: str) -> Array:
    """x times the normal distribution function of x, or the tanh approximation of it."""
    if approximate == "tanh":
        inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
        return np.asarray(np.float32(0.5) * x * (1 + np.tanh(inner)), dtype=x.dtype)
    return np.asarray(np.float32(0.5) * x * (1 + erf(x * np.float32(math.sqrt(0.5)))), dtype=x.dtype)


def leaky_relu(x: Array, *, slope: float) -> Array:
    """x, or slope * x below 0."""
    return np.where(x > 0, x, x * np.asarray(slope, dtype=x.dtype))


def clamp(x: Array, *, minimum: float | None = None, maximum: float | None = None) -> Array:
    """x between two limits, either of which may be missing."""
    low = None if minimum is None else np.asarray(minimum, dtype=x.dtype)
    high = None if maximum is None else np.asarray(maximum, dtype=x.dtype)
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _cast(x: Array, *, dtype: str) -> Array:
    if dtype not in ("float32", "float64", "int64", "int32", "bool", "uint8"):
        raise PackError(f"a cast to {dtype!r:.40}", "float32, float64, int64, int32, uint8 or bool")
    return x.astype(dtype)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def call(*inputs: Array, left: float | None = None, right: float | None = None) -> Array:
        # python numbers are weak: they take the other side's element type, as in torch
        a, b = (left, inputs[0]) if left is not None else (inputs[0], right if right is not None else inputs[1])
        return np.asarray(function(a, b))

    return call


def _divide(a: Any, b: Any) -> Any:
    return np.true_divide(a, b) if _floating(a, b) else np.true_divide(a, b, dtype=np.float32)


def _floating(*values: Any) -> bool:
    return any(isinstance(v, float) or np.issubdtype(np.asarray(v).dtype, np.floating) for v in values)


def _where(condition: Array, *inputs: Array, left: float | None = None, right: float | None = None) -> Array:
    rest = list(inputs)
    a = rest.pop(0) if left is None else np.asarray(left, dtype=rest[0].dtype if rest else np.float32)
    b = rest.pop(0) if right is None else np.asarray(right, dtype=a.dtype)
    return np.where(condition, a, b)


ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "relu": lambda x: np.maximum(x, np.zeros((), dtype=x.dtype)),
    "tanh": np.tanh, "sigmoid": sigmoid, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "sqrt": np.sqrt, "neg": np.negative, "abs": np.abs, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "atan2": _binary(np.arctan2), "erf": erf, "gelu": gelu,
    "elu": elu, "floor": np.floor, "ceil": np.ceil, "round": np.round, "trunc": np.trunc, "sign": np.sign,
    "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": np.reciprocal, "logical_not": np.logical_not,
    "leaky_relu": leaky_relu, "clamp": clamp, "cast": _cast, "where": _where,
    "add": _binary(np.add), "sub": _binary(np.subtract), "mul": _binary(np.multiply), "div": _binary(_divide),
    "pow": _binary(np.power), "maximum": _binary(np.maximum), "minimum": _binary(np.minimum),
    "fmod": _binary(np.fmod), "remainder": _binary(np.remainder), "floor_divide": _binary(np.floor_divide),
    "eq": _binary(np.equal), "ne": _binary(np.not_equal), "lt": _binary(np.less), "le": _binary(np.less_equal),
    "gt": _binary(np.greater), "ge": _binary(np.greater_equal), "logical_and": _binary(np.logical_and),
    "logical_or": _binary(np.logical_or), "logical_xor": _binary(np.logical_xor),
}  # fmt: skip


def _reduce(function: Callable[..., Any]) -> Callable[..., Array]:
    def call(x: Array, *, axes: Sequence[int], keep: bool) -> Array:
        return np.asarray(function(x, axis=tuple(axes), keepdims=keep))

    return call


def _arg(function: Callable[..., Any]) -> Callable[..., Array]:
    def call(x: Array, *, axis: int | None = None, keep: bool) -> Array:
        return np.asarray(function(x, axis=axis, keepdims=keep), dtype=np.int64)

    return call


def mean(x: Array, *, axes: Sequence[int], keep: bool) -> Array:
    """The mean; of nothing it is NaN, without numpy's warning."""
    return np.asarray(np.sum(x, axis=tuple(axes), keepdims=keep) / math.prod(x.shape[axis] for axis in axes))


def _var(x: Array, *, axes: Sequence[int], keep: bool, correction: float) -> Array:
    centred, count = x - mean(x, axes=axes, keep=True), math.prod(x.shape[axis] for axis in axes)
    total = np.sum(centred * centred, axis=tuple(axes), keepdims=keep)
    return np.asarray(total / max(count - int(correction), 0), dtype=x.dtype)


def _argsort(x: Array, *, axis: int, descending: bool) -> Array:
    return np.argsort(-x if descending else x, axis=axis, kind="stable")


def _sort(x: Array, *, axis: int, descending: bool) -> Array:
    return np.take_along_axis(x, _argsort(x, axis=axis, descending=descending), axis)


def _slice(x: Array, *, axis: int, start: int, step: int, stop: int | None = None) -> Array:
    place: list[slice] = [slice(None)] * x.ndim
    place[axis] = slice(start, stop, step)
    return x[tuple(place)]


def _put_slice(x: Array, part: Array, *, axis: int, start: int, step: int, stop: int | None = None) -> Array:
    out = x.copy()
    _slice(out, axis=axis, start=start, stop=stop, step=step)[...] = part
    return out


def _pad(x: Array, *, widths: Sequence[int], mode: str, value: float) -> Array:
    """`widths` go before and after, from the last axis to the first, as in torch; negative ones crop."""
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2) + list(zip(widths[::2], widths[1::2]))[::-1]
    x = x[tuple(slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(x.shape, pairs))]
    grown = [(max(0, a), max(0, b)) for a, b in pairs]
    allowed([n + a + b for n, (a, b) in zip(x.shape, grown)])
    if mode == "constant":
        return np.pad(x, grown, constant_values=value)
    if mode not in ("reflect", "edge", "wrap"):
        raise PackError(f"padding {mode!r:.40}", "constant, reflect, edge or wrap")
    return np.pad(x, grown, mode=mode)  # type: ignore[call-overload, no-any-return]


def _places(x: Array, indices: Sequence[Array], axes: Sequence[int]) -> tuple[Any, ...]:
    place: list[Any] = [slice(None)] * x.ndim
    for axis, index in zip(axes, indices, strict=True):
        if index.dtype == np.bool_:
            raise PackError("an index of booleans", "whole numbers", "how many it picks is known only when it runs")
        place[axis] = index
    return tuple(place)


def _index_add(x: Array, index: Array, source: Array, *, axis: int) -> Array:
    out = x.copy()
    np.add.at(np.moveaxis(out, axis, 0), index, np.moveaxis(source, axis, 0))
    return out


def _scatter(x: Array, index: Array, source: Array, *, axis: int, mode: str) -> Array:
    """Values of the source where the index says, or what `mode` makes of both; of several, the last is set."""
    out, places = x.copy(), list[Any](np.indices(index.shape, sparse=True))
    places[axis] = index
    part = source[tuple(slice(0, n) for n in index.shape)]
    if mode == "set":
        out[tuple(places)] = part
    elif mode in _MODES:
        _MODES[mode].at(out, tuple(places), part)
    else:
        raise PackError(f"scatter {mode!r:.40}", "set, " + ", ".join(_MODES))
    return out


_MODES = {"add": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _index_put(x: Array, values: Array, *indices: Array, axes: Sequence[int], add: bool) -> Array:
    out, place = x.copy(), _places(x, indices, axes)
    if add:
        np.add.at(out, place, values)
    else:
        out[place] = values
    return out


def _arange(*, shape: Sequence[int], start: float, step: float, dtype: str) -> Array:
    return _cast(start + step * np.arange(allowed(shape)[0]), dtype=dtype)


def _full(*, shape: Sequence[int], value: float, dtype: str) -> Array:
    return _cast(np.full(allowed(shape), value), dtype=dtype)


SHAPES: dict[str, Callable[..., Array]] = {
    "sum": _reduce(np.sum), "mean": mean, "amax": _reduce(np.max), "amin": _reduce(np.min),
    "prod": _reduce(np.prod), "any": _reduce(np.any), "all": _reduce(np.all), "argmax": _arg(np.argmax),
    "argmin": _arg(np.argmin), "var": _var, "sort": _sort, "argsort": _argsort,
    "cumsum": lambda x, *, axis: np.cumsum(x, axis=axis, dtype=x.dtype if _floating(x) else np.int64),
    "reshape": lambda x, *, shape: x.reshape(tuple(shape)),
    "expand": lambda x, *, shape: np.broadcast_to(x, tuple(shape)),
    "full": _full, "permute": lambda x, *, axes: x.transpose(tuple(axes)),
    "concat": lambda *inputs, axis: np.concatenate(inputs, axis=axis), "slice": _slice,
    "put_slice": _put_slice,
    "select": lambda x, *, axis, index: np.take(x, index, axis=axis), "pad": _pad,
    "roll": lambda x, *, shifts, axes: np.roll(x, tuple(shifts), tuple(axes)),
    "flip": lambda x, *, axes: np.flip(x, tuple(axes)),
    "gather": lambda x, index, *, axis: np.take_along_axis(x, index, axis),
    "index_select": lambda x, index, *, axis: np.take(x, index, axis=axis),
    "index": lambda x, *indices, axes: np.asarray(x[_places(x, indices, axes)]), "index_put": _index_put,
    "embedding": lambda table, index: np.take(table, index, axis=0), "arange": _arange, "scatter": _scatter,
    "scatter_add": partial(_scatter, mode="add"), "index_add": _index_add,
}  # fmt: skip
