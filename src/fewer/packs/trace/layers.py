"""Arithmetic, layers and reductions of torch as operations of a program."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import torch

from fewer.core.errors import UserError
from fewer.packs.program import BINARY, UNARY
from fewer.packs.trace.record import Constant, Converter, Recorder, binary, number

__all__ = ["LAYERS"]

_BITWISE = {f"bitwise_{name}": f"logical_{name}" for name in ("and", "or", "xor", "not")}


def _binary(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    other = a.other if hasattr(a, "other") else a.exponent
    if getattr(a, "alpha", 1) != 1:
        other = binary(recorder, "mul", other, a.alpha) if number(other) is None else other * a.alpha
    return binary(
        recorder, _BITWISE.get(a.name, a.name), recorder.promoted(a.self, shown), recorder.promoted(other, shown)
    )


def _divide(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    mode = getattr(a, "rounding_mode", None)
    answer = binary(recorder, "div", recorder.promoted(a.self, shown), recorder.promoted(a.other, shown))
    return answer if mode is None else recorder.emit(mode, answer)


def _linear(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit("linear", *[part for part in (a.input, a.weight, a.bias) if part is not None])


def _product(recorder: Recorder, left: Any, right: Any, bias: Any = None) -> str:
    """x W for a constant matrix is a layer with weights W^T, under the name they had before torch turned them."""
    if isinstance(right, Constant) and right.value.ndim == 2 and isinstance(left, str):
        weight = Constant(right.value.T.contiguous(), name=right.transpose_of)
        flat = isinstance(bias, Constant) and bias.value.ndim == 1
        answer = recorder.emit("linear", left, weight, *([bias] if flat else []))
        return answer if flat or bias is None else binary(recorder, "add", answer, bias)
    answer = recorder.emit("matmul", left, right)
    return answer if bias is None else binary(recorder, "add", answer, bias)


def _addmm(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    if a.beta != 1 or a.alpha != 1:
        scaled = binary(recorder, "mul", _product(recorder, a.mat1, a.mat2), a.alpha)
        return binary(recorder, "add", scaled, binary(recorder, "mul", a.self, a.beta))
    return _product(recorder, a.mat1, a.mat2, a.self)


def _convolution(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    inputs = [part for part in (a.input, a.weight, a.bias) if part is not None]
    rank = len(a.stride)
    return recorder.emit(
        "conv", *inputs, stride=list(a.stride), padding=list(a.padding), dilation=list(a.dilation), groups=a.groups,
        transposed=a.transposed, output_padding=list(a.output_padding) or [0] * rank,
    )  # fmt: skip


def _norm(op: str) -> Converter:
    def call(recorder: Recorder, a: SimpleNamespace, shown: Any) -> tuple[Any, ...]:
        affine = [part for part in (a.weight, a.bias) if part is not None]
        if op == "batch_norm":
            value = recorder.emit(op, a.input, a.running_mean, a.running_var, *affine, epsilon=a.eps)
        elif op == "layer_norm":
            value = recorder.emit(op, a.input, *affine, axes=len(a.normalized_shape), epsilon=a.eps)
        else:
            value = recorder.emit(op, a.input, *affine, groups=a.group, epsilon=a.eps)
        return value, None, None

    return call


def _instance_norm(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    affine = [part for part in (a.weight, a.bias) if part is not None]
    if not a.use_input_stats:
        return recorder.emit("batch_norm", a.input, a.running_mean, a.running_var, *affine, epsilon=a.eps)
    return recorder.emit("group_norm", a.input, *affine, groups=int(shown.shape[1]), epsilon=a.eps)


def _attention(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    key, value = a.key, a.value
    if a.enable_gqa:
        heads = shown.shape[-3]
        key, value = (_each_head(recorder, part, int(heads)) for part in (key, value))
    inputs = [part for part in (a.query, key, value, a.attn_mask) if part is not None]
    return recorder.emit("attention", *inputs, causal=a.is_causal, scale=a.scale)


def _each_head(recorder: Recorder, value: Any, heads: int) -> str:
    """Keys or values, repeated for every query head that shares them."""
    like = recorder.like(value)
    index = torch.arange(like.shape[-3]).repeat_interleave(heads // int(like.shape[-3]))
    return recorder.emit("index_select", value, Constant(index), axis=like.ndim - 3)


def _clamp(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
    low, high = getattr(a, "min", None), getattr(a, "max", None)
    if (
        isinstance(low, str)
        or isinstance(high, str)
        or any(isinstance(v, Constant) and v.value.ndim for v in (low, high))
    ):
        value = a.self if low is None else binary(recorder, "maximum", a.self, low)
        return value if high is None else binary(recorder, "minimum", value, high)
    return recorder.emit("clamp", a.self, minimum=number(low), maximum=number(high))


def _where(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    left, right = number(a.self), number(a.other)
    pairs = ((a.self, left), (a.other, right))
    inputs = [recorder.promoted(value, shown) for value, known in pairs if known is None]
    return recorder.emit("where", a.condition, *inputs, left=left, right=right)


def _masked_fill(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit("where", a.mask, a.self, left=number(a.value))


def _axes(a: SimpleNamespace, rank: int) -> list[int]:
    given = a.dim if getattr(a, "dim", None) is not None else []
    return [axis % rank for axis in ([given] if isinstance(given, int) else given)] or list(range(rank))


def _reduce(op: str) -> Converter:
    def call(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
        if getattr(a, "dim", None) in (None, []):
            raise UserError(f"{op} over all samples", f"{op} over named axes of one sample")
        return recorder.emit(
            op, a.self, axes=_axes(a, recorder.like(a.self).ndim), keep=bool(getattr(a, "keepdim", False))
        )

    return call


def _variance(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
    axes, keep = _axes(a, recorder.like(a.self).ndim), bool(a.keepdim)
    correction = 1 if a.correction is None else a.correction
    variance = recorder.emit("var", a.self, axes=axes, keep=keep, correction=correction)
    if a.name == "var":
        return variance
    return variance, recorder.emit("mean", a.self, axes=axes, keep=keep)


def _extreme(values: str, places: str) -> Converter:
    def call(recorder: Recorder, a: SimpleNamespace, shown: Any) -> tuple[str, str]:
        if getattr(a, "dim", None) is None:
            raise UserError(f"{a.name} over all samples", f"{a.name} over an axis of one sample")
        keep = bool(a.keepdim)
        return (
            recorder.emit(values, a.self, axes=[a.dim], keep=keep),
            recorder.emit(places, a.self, axis=a.dim, keep=keep),
        )

    return call


def _place(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    if a.dim is None:
        raise UserError(f"{a.name} over all samples", f"{a.name} over an axis of one sample")
    return recorder.emit(a.name, a.self, axis=a.dim, keep=bool(a.keepdim))


def _sort(recorder: Recorder, a: SimpleNamespace, shown: Any) -> tuple[str, str]:
    names = [recorder.emit(op, a.self, axis=a.dim, descending=bool(a.descending)) for op in ("sort", "argsort")]
    return names[0], names[1]


def _topk(recorder: Recorder, a: SimpleNamespace, shown: Any) -> tuple[str, str]:
    names = [recorder.emit(op, a.self, axis=a.dim, descending=bool(a.largest)) for op in ("sort", "argsort")]
    first, second = (recorder.emit("slice", name, axis=a.dim, start=0, stop=a.k, step=1) for name in names)
    return first, second


def _is_nan(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit("ne", a.self, a.self)


def _unary(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit(a.name, a.self)


def _logarithm(base: int) -> Converter:
    return lambda recorder, a, shown: recorder.emit("mul", recorder.emit("log", a.self), right=1 / math.log(base))


def _exp2(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit("exp", recorder.emit("mul", a.self, right=math.log(2)))


def _vector_norm(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    if not a.dim:
        raise UserError("a norm over all samples", "a norm over named axes of one sample")
    rank = recorder.like(a.self).ndim
    axes, keep, order = [axis % rank for axis in a.dim], bool(a.keepdim), float(a.ord)
    sizes = recorder.emit("abs", a.self)
    if math.isinf(order):
        return recorder.emit("amax" if order > 0 else "amin", sizes, axes=axes, keep=keep)
    if order == 2:
        return recorder.emit("sqrt", recorder.emit("sum", recorder.emit("mul", a.self, a.self), axes=axes, keep=keep))
    powers = sizes if order == 1 else recorder.emit("pow", sizes, right=order)
    total = recorder.emit("sum", powers, axes=axes, keep=keep)
    return total if order == 1 else recorder.emit("pow", total, right=1 / order)


def _silu(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit("mul", a.self, recorder.emit("sigmoid", a.self))


def _elu(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit("elu", a.self, alpha=a.alpha, scale=a.scale, input_scale=a.input_scale)


def _hard_tangent(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit("clamp", a.self, minimum=a.min_val, maximum=a.max_val)


def _leaky(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
    slope = a.negative_slope if a.name == "leaky_relu" else (a.lower + a.upper) / 2
    if getattr(a, "training", False):
        raise UserError("rrelu in training mode", "evaluation mode")
    value = recorder.emit("leaky_relu", a.self, slope=slope)
    return (value, None) if a.name.endswith("functional") else value


LAYERS: dict[str, Converter] = {
    **dict.fromkeys(UNARY.split(), _unary), **dict.fromkeys([*BINARY.split(), *_BITWISE], _binary), "div": _divide,
    **{name: _logarithm(base) for name, base in (("log2", 2), ("log10", 10))}, "exp2": _exp2,
    "rsub": lambda recorder, a, shown: binary(recorder, "sub", a.other, a.self),
    "linear": _linear, "addmm": _addmm, "mm": lambda recorder, a, shown: _product(recorder, a.self, a.mat2),
    "bmm": lambda recorder, a, shown: recorder.emit("matmul", a.self, a.mat2),
    "matmul": lambda recorder, a, shown: _product(recorder, a.self, a.other),
    "mv": lambda recorder, a, shown: recorder.emit("matmul", a.self, a.vec),
    "convolution": _convolution, "_native_batch_norm_legit_no_training": _norm("batch_norm"),
    "native_layer_norm": _norm("layer_norm"), "native_group_norm": _norm("group_norm"),
    "instance_norm": _instance_norm, "scaled_dot_product_attention": _attention,
    "clamp": _clamp, "clamp_min": _clamp, "clamp_max": _clamp, "hardtanh": _hard_tangent, "where": _where,
    "masked_fill": _masked_fill, "gelu": lambda r, a, shown: r.emit("gelu", a.self, approximate=a.approximate),
    "leaky_relu": _leaky, "rrelu": _leaky, "rrelu_with_noise": _leaky, "elu": _elu, "silu": _silu,
    "rrelu_with_noise_functional": _leaky,
    "_softmax": lambda recorder, a, shown: recorder.emit("softmax", a.self, axis=a.dim),
    "_log_softmax": lambda recorder, a, shown: recorder.emit("log_softmax", a.self, axis=a.dim),
    "bitwise_not": lambda recorder, a, shown: recorder.emit("logical_not", a.self), "isnan": _is_nan,
    "isinf": lambda recorder, a, shown: recorder.emit("eq", recorder.emit("abs", a.self), right=math.inf),
    "linalg_vector_norm": _vector_norm,
    **{name: _reduce(name) for name in ("sum", "mean", "amax", "amin", "prod", "any", "all")},
    "var": _variance, "var_mean": _variance, "max": _extreme("amax", "argmax"), "min": _extreme("amin", "argmin"),
    "argmax": _place, "argmin": _place, "sort": _sort, "topk": _topk,
    "cumsum": lambda recorder, a, shown: recorder.emit("cumsum", a.self, axis=a.dim),
}  # fmt: skip
