"""Operations of a recorded step that C does itself, each as torch does it to the bit; the others stay with torch."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["squared_difference", "steps_of"]

_CODES = {
    name: code
    for code, name in enumerate((
        "copy", "add", "subtract", "multiply", "divide", "negate", "lowest", "highest", "clamp", "square",
        "squared_difference", "slope_of_squares", "at_least", "at_most", "both", "where", "fill",
        "gather", "widened_add", "count_add", "count_divide", "count_to_real",
    ))
}  # fmt: skip
_LAYOUT = struct.Struct("=21q2d")  # `Step` in kernels/train_steps.h
_REAL = (torch.float32, torch.float64)
_NOWHERE = (0, 0, 0, 0)

Operand = Tensor | float | None
Steps = list[bytes]


def _step(name: str, out: Tensor, *operands: Operand, x: float = 0.0, y: float = 0.0) -> Steps | None:
    """One elementwise operation; a number as an operand is `x`, of which there is one."""
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    numbers = [float(operand) for operand in operands if isinstance(operand, (int, float))]
    if len(numbers) > 1 or np.broadcast_shapes(tuple(out.shape), *(tuple(t.shape) for t in tensors)) != out.shape:
        return None
    views = [out, *(tensor.expand(out.shape) for tensor in tensors)]
    merged = _merged(tuple(out.shape), [view.stride() for view in views])
    if merged is None or not out.numel():
        return None
    size, strides = merged
    placed = iter(zip(views[1:], strides[1:]))
    slots = [_place(*next(placed)) if isinstance(operand, Tensor) else _NOWHERE for operand in operands]
    slots += [_NOWHERE] * (3 - len(slots))
    real = next((t.dtype for t in (out, *tensors) if t.dtype in _REAL), torch.float32)
    numbers += [x]
    whole = (_CODES[name], real is torch.float64, *size, *_place(out, strides[0]), *slots[0], *slots[1], *slots[2])
    return [_LAYOUT.pack(*whole, numbers[0], y)]


def _place(tensor: Tensor, strides: tuple[int, int, int]) -> tuple[int, int, int, int]:
    return (tensor.data_ptr(), *strides)


def _merged(
    shape: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[tuple[int, int, int], list[tuple[int, int, int]]] | None:
    """Sizes and strides in three dimensions, the closest neighbours of the first tensor last; None: it needs more."""
    order = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: -strides[0][d])
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for d in order:
        if sizes and all(own[-1] == stride[d] * shape[d] for own, stride in zip(steps, strides)):
            sizes[-1] *= shape[d]
            for own, stride in zip(steps, strides):
                own[-1] = stride[d]
        else:
            sizes.append(shape[d])
            for own, stride in zip(steps, strides):
                own.append(stride[d])
    if len(sizes) > 3:
        return None
    lead = 3 - len(sizes)
    return tuple([1] * lead + sizes), [tuple([0] * lead + own) for own in steps]  # type: ignore[return-value, misc]


def _binary(name: str) -> Callable[..., Steps | None]:
    def steps(out: Tensor, a: Operand, b: Operand, *, alpha: float = 1) -> Steps | None:
        if alpha != 1:  # torch multiplies and adds in one rounding
            return None
        return _step(name, out, a, b)

    return steps


def _unary(name: str) -> Callable[..., Steps | None]:
    return lambda out, a, **options: _step(name, out, a) if not _changes_type(options, out) else None


def _changes_type(options: dict[str, Any], out: Tensor) -> bool:
    return options.get("dtype", out.dtype) is not out.dtype


def _copy_(out: Tensor, a: Tensor, b: Tensor, non_blocking: bool = False) -> Steps | None:
    return _step("copy", out, b)


def _clamp(out: Tensor, a: Tensor, low: float | None = None, high: float | None = None) -> Steps | None:
    return _step("clamp", out, a, x=-math.inf if low is None else low, y=math.inf if high is None else high)


def _power(out: Tensor, a: Tensor, exponent: float) -> Steps | None:
    return _step("square" if exponent == 2 else "copy", out, a) if exponent in (1, 2) else None


def _both(out: Tensor, a: Tensor, b: Tensor) -> Steps | None:
    return _step("both", out, a, b) if a.dtype is b.dtype is torch.bool else None


def _where(out: Tensor, condition: Tensor, a: Tensor, b: Tensor) -> Steps | None:
    return _step("where", out, a, condition, b) if condition.dtype is torch.bool else None


def _slope_of_squares(out: Tensor, g: Tensor, a: Tensor, b: Tensor, reduction: int) -> Steps | None:
    return _step("slope_of_squares", out, a, b, g, x=2.0 / a.numel()) if reduction == 1 else None


def _cat(out: Tensor, parts: Sequence[Tensor], dim: int = 0) -> Steps | None:
    steps, begin = [], 0
    for part in parts:
        if not part.numel():
            return None
        piece = _step("copy", out.narrow(dim, begin, part.shape[dim]), part)
        if piece is None:
            return None
        steps += piece
        begin += part.shape[dim]
    return steps


def _select_backward(out: Tensor, g: Tensor, sizes: Sequence[int], dim: int, index: int) -> Steps | None:
    empty, filled = _step("fill", out), _step("copy", out.select(dim, index), g)
    return None if empty is None or filled is None else empty + filled


def _slice_backward(
    out: Tensor, g: Tensor, sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> Steps | None:
    place = out[(slice(None),) * (dim % out.dim()) + (slice(start, end, step),)]
    empty, filled = _step("fill", out), _step("copy", place, g)
    return None if empty is None or filled is None else empty + filled


def _gather(out: Tensor, a: Tensor, dim: int, index: Tensor) -> Steps | None:
    """Rows of a matrix or numbers of a vector."""
    if dim % a.dim() or a.dim() > 2 or index.dim() != 1 or index.dtype is not torch.int64 or not out.numel():
        return None
    row, outs = (t if t.dim() == 2 else t[:, None] for t in (a, out))
    size = (1, *outs.shape)
    places = ((t.data_ptr(), 0, *t.stride()) for t in (outs, row))
    numbers = (*next(places), *next(places), index.data_ptr(), 0, index.stride(0), 0, *_NOWHERE)
    return [_LAYOUT.pack(_CODES["gather"], a.dtype is torch.float64, *size, *numbers, float(len(a)), 0.0)]


_STEPS: dict[str, Callable[..., Steps | None]] = {
    "add.Tensor": _binary("add"), "add_.Tensor": _binary("add"),
    "sub.Tensor": _binary("subtract"), "sub_.Tensor": _binary("subtract"),
    "mul.Tensor": _binary("multiply"), "mul_.Tensor": _binary("multiply"),
    "div.Tensor": _binary("divide"), "div_.Tensor": _binary("divide"),
    "mul.Scalar": _binary("multiply"), "div.Scalar": _binary("divide"),
    "minimum.default": _binary("lowest"), "maximum.default": _binary("highest"),
    "ge.Scalar": _binary("at_least"), "le.Scalar": _binary("at_most"),
    "logical_and_.default": _both, "logical_and.default": _both,
    "neg.default": _unary("negate"), "clone.default": _unary("copy"), "_to_copy.default": _unary("copy"),
    "copy_.default": _copy_, "clamp.default": _clamp, "pow.Tensor_Scalar": _power, "where.self": _where,
    "mse_loss_backward.default": _slope_of_squares, "cat.default": _cat, "index_select.default": _gather,
    "select_backward.default": _select_backward, "slice_backward.default": _slice_backward,
}  # fmt: skip
_BOOLEAN = ("where.self", "logical_and_.default", "logical_and.default")  # these read booleans
_TO_BOOLEAN = ("ge.Scalar", "le.Scalar", "logical_and_.default", "logical_and.default")


def _counted(name: str, arguments: tuple[Any, ...], options: dict[str, Any], out: Tensor) -> Steps | None:
    """What an optimiser does beside its numbers: counts steps in int64, and adds a loss to a float64 sum."""
    first, other = arguments[0], arguments[1] if len(arguments) > 1 else None
    kinds = first.dtype, out.dtype
    if name == "add_.Tensor" and isinstance(other, Tensor) and not options:
        widened = first.dtype is torch.float64 and other.dtype is torch.float32
        return _step("widened_add", out, first, other) if widened else None
    if name == "_to_copy.default" and kinds[0] is torch.int64 and kinds[1] in _REAL:
        return _step("count_to_real", out, first)
    if kinds != (torch.int64, torch.int64) or type(other) is not int or abs(other) >= 2**53:
        return None
    if name in ("add.Tensor", "add_.Tensor") and not options:
        return _step("count_add", out, first, x=other)
    if name == "div.Tensor_mode" and options == {"rounding_mode": "floor"} and other > 0:
        return _step("count_divide", out, first, x=other)
    return None


def squared_difference(a: Tensor, b: Tensor, out: Tensor) -> Steps | None:
    """(a - b)^2."""
    if out.device.type != "cpu" or len({t.dtype for t in (a, b, out)}) > 1 or out.dtype not in _REAL:
        return None
    return _step("squared_difference", out, a, b)


def steps_of(function: Any, arguments: tuple[Any, ...], options: dict[str, Any], out: Tensor) -> Steps | None:
    """An operation of torch into `out` as steps for C; None: torch must do it."""
    name = f"{function._schema.name.removeprefix('aten::')}.{function._overloadname}"
    if arguments and isinstance(arguments[0], Tensor) and out.device.type == "cpu":
        counted = _counted(name, arguments, options, out)
        if counted is not None:
            return counted
    make = _STEPS.get(name)
    if make is None or out.dtype not in (*_REAL, torch.bool) or out.device.type != "cpu":
        return None
    given = _flat(arguments[:1] if make is _gather else arguments)
    real = {tensor.dtype for tensor in (*given, out)} - {torch.bool}
    # C reads what it is told to: one floating type, and booleans only where they belong
    if len(real) > 1 or not real <= set(_REAL) or (name not in _BOOLEAN and any(t.dtype is torch.bool for t in given)):
        return None
    if (out.dtype is torch.bool) != (name in _TO_BOOLEAN):
        return None
    return make(out, *arguments, **options)


def _flat(arguments: Sequence[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            found.append(argument)
        elif isinstance(argument, (list, tuple)):
            found += _flat(argument)
    return found
