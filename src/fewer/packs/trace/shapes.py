"""Shapes, indices, pools and resizing of torch as operations of a program."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from fewer.core.errors import UserError
from fewer.packs.trace.record import Constant, Converter, Recorder, element_type, number

__all__ = ["SHAPES"]

_SAME = ["clone", "alias", "detach", "contiguous", "lift_fresh_copy", "lift_fresh", "positive"]
_RESHAPES = ["view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "flatten", "unflatten", "_reshape_alias"]


def _reshape(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit("reshape", a.self, shape=recorder.dimensions(shown.shape))


def _permute(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    axes = list(range(shown.ndim))
    if a.name == "permute":
        axes = [axis % shown.ndim for axis in a.dims]
    else:
        first, second = (0, 1) if a.name == "t" else (a.dim0, a.dim1)
        axes[first], axes[second] = axes[second], axes[first]
    return recorder.emit("permute", a.self, axes=axes)


def _repeat(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    """An axis of 1 before each axis, widened, then both made one."""
    total, counts = recorder.dimensions(shown.shape), recorder.dimensions(a.repeats)
    own = recorder.dimensions(recorder.like(a.self).shape)
    sizes = [1] * (len(counts) - len(own)) + own
    if any(isinstance(size, str) and count != 1 for size, count in zip(sizes, counts)):
        raise UserError("repeat over samples", "repeat over axes of one sample")
    paired = [size for pair in zip(counts, sizes) for size in pair]
    ones = recorder.emit("reshape", a.self, shape=[size for n in sizes for size in (1, n)])
    return recorder.emit("reshape", recorder.emit("expand", ones, shape=paired), shape=total)


def _slice(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
    start, stop = a.start or 0, a.end
    if start == 0 and isinstance(stop, int) and stop >= 2**62 and a.step == 1:
        return a.self
    if not isinstance(start, int) or not isinstance(stop, (int, type(None))):
        if start == 0 and a.step == 1 and isinstance(stop, torch.SymInt):
            return _until(recorder, a, stop)
        raise UserError("a slice that depends on the number of samples", "fixed bounds")
    return recorder.emit(
        "slice", a.self, axis=a.dim, start=start, stop=None if stop is None or stop >= 2**62 else stop, step=a.step
    )


def _until(recorder: Recorder, a: SimpleNamespace, stop: Any) -> Any:
    """The first places of an axis, as many as a sequence is long."""
    size, own = recorder.dimensions([stop])[0], recorder.dimensions(recorder.like(a.self).shape)[a.dim]
    return a.self if size == own else recorder.emit("slice", a.self, axis=a.dim, start=0, stop=size, step=1)


def _put_slice(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
    """What writing into a part of a value becomes: a new value with that part."""
    axis = a.dim
    if a.name == "select_scatter":
        place = a.index % int(shown.shape[axis])
        shape = recorder.dimensions(shown.shape)
        shape[axis] = 1
        part = recorder.emit("reshape", a.src, shape=shape)
        return recorder.emit("put_slice", a.self, part, axis=axis, start=place, stop=place + 1, step=1)
    start, stop = a.start or 0, a.end
    if not isinstance(start, int) or not isinstance(stop, (int, type(None))):
        raise UserError("a slice that depends on the number of samples", "fixed bounds")
    stop = None if stop is None or stop >= 2**62 else stop
    if start == 0 and stop is None and a.step == 1:
        return a.src  # all of it is overwritten
    return recorder.emit("put_slice", a.self, a.src, axis=axis, start=start, stop=stop, step=a.step)


def _copy(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
    if a.name == "fill":
        return recorder.emit(
            "full", shape=recorder.dimensions(shown.shape), value=number(a.value), dtype=element_type(shown)
        )
    return recorder.emit("expand", recorder.promoted(a.src, shown), shape=recorder.dimensions(shown.shape))


def _split(recorder: Recorder, a: SimpleNamespace, shown: Any) -> tuple[str, ...]:
    start, parts = 0, []
    for part in shown:
        size = int(part.shape[a.dim])
        parts.append(recorder.emit("slice", a.self, axis=a.dim, start=start, stop=start + size, step=1))
        start += size
    return tuple(parts)


def _unbind(recorder: Recorder, a: SimpleNamespace, shown: Any) -> tuple[str, ...]:
    return tuple(recorder.emit("select", a.self, axis=a.dim, index=i) for i in range(len(shown)))


def _stack(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    shape = recorder.dimensions(shown.shape)
    shape[a.dim] = 1
    return recorder.emit("concat", *[recorder.emit("reshape", part, shape=shape) for part in a.tensors], axis=a.dim)


def _index(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    axes = [axis for axis, index in enumerate(a.indices) if index is not None]
    indices = [a.indices[axis] for axis in axes]
    if any(recorder.like(index).dtype == torch.bool for index in indices):
        raise UserError(f"{a.name} by booleans", "an index of whole numbers", "choose with torch.where")
    if a.name == "index":
        return recorder.emit("index", a.self, *indices, axes=axes)
    return recorder.emit("index_put", a.self, a.values, *indices, axes=axes, add=bool(a.accumulate))


def _pool(op: str) -> Converter:
    def call(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
        rank = len(a.kernel_size)
        wide = {
            name: list(v) * (rank if len(v) == 1 else 1)
            for name, v in vars(a).items()
            if isinstance(v, (list, tuple)) and v
        }
        options = {
            "kernel": wide["kernel_size"],
            "stride": wide.get("stride", wide["kernel_size"]),
            "ceil": bool(a.ceil_mode),
        }
        options["padding"] = wide.get("padding", [0] * rank)
        if op == "max_pool":
            return recorder.emit(op, a.self, **options, dilation=wide.get("dilation", [1] * rank)), None
        if getattr(a, "divisor_override", None) is not None:
            raise UserError("avg_pool with divisor_override", "the number of places as divisor")
        return recorder.emit(op, a.self, **options, count_padding=bool(a.count_include_pad))

    return call


def _adaptive(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
    first = shown[0] if isinstance(shown, (tuple, list)) else shown
    size = [int(n) for n in first.shape[-len(a.output_size) :]]
    if "max" in a.name:
        return recorder.emit("adaptive_max_pool", a.self, size=size), None
    return recorder.emit("adaptive_avg_pool", a.self, size=size)


def _interpolate(mode: str) -> Converter:
    def call(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
        value = a.self if a.self is not None else a.input
        scales = getattr(a, "scale_factors", None)
        return recorder.emit(
            "interpolate", value, size=[int(n) for n in shown.shape[2:]], mode=mode,
            align_corners=bool(getattr(a, "align_corners", False)), scales=list(scales) if scales else None,
        )  # fmt: skip

    return call


def _full(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    value = number(a.fill_value) if "full" in a.name else int("ones" in a.name)
    return recorder.emit("full", shape=recorder.dimensions(shown.shape), value=value, dtype=element_type(shown))


def _cast(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
    return recorder.emit("cast", a.self, dtype=element_type(shown)) if a.dtype is not None else a.self


def _same(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
    return a.self


def _expand(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit("expand", a.self, shape=recorder.dimensions(shown.shape))


def _select(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    return recorder.emit("select", a.self, axis=a.dim, index=a.index)


def _taken(op: str) -> Converter:
    """Operations of a value, an index and perhaps a source along one axis."""

    def call(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
        source = getattr(a, "src", getattr(a, "source", None))
        inputs = [a.self, a.index] + ([] if source is None else [source])
        return recorder.emit(op, *inputs, axis=a.dim)

    return call


def _scatter(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    source = getattr(a, "src", None)
    if source is None:
        like = recorder.like(a.index)
        source = recorder.emit(
            "full", shape=recorder.dimensions(like.shape), value=number(a.value), dtype=element_type(shown)
        )
    mode = getattr(a, "reduce", None) or "set"
    if getattr(a, "include_self", True) is False or mode == "mean":
        raise UserError(f"{a.name} without the values before it, or their mean", "sum, prod, amax or amin of both")
    if mode in ("sum", "add"):
        return recorder.emit("scatter_add", a.self, a.index, source, axis=a.dim)
    mode = "prod" if mode == "multiply" else mode
    return recorder.emit("scatter", a.self, a.index, source, axis=a.dim, mode=mode)


def _pad(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    if a.name == "constant_pad_nd":
        return recorder.emit("pad", a.self, widths=list(a.pad), mode="constant", value=number(a.value))
    mode = "reflect" if a.name.startswith("reflection") else "edge"
    return recorder.emit("pad", a.self, widths=list(a.padding), mode=mode, value=0)


def _windows(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    """Windows along an axis, their places on a new last one."""
    rank, axis = shown.ndim - 1, a.dimension % (shown.ndim - 1)
    index = torch.arange(int(shown.shape[axis]))[:, None] * a.step + torch.arange(a.size)
    taken = recorder.emit("index_select", a.self, Constant(index), axis=axis)
    order = [place for place in range(rank + 1) if place != axis + 1]
    return recorder.emit("permute", taken, axes=[*order, axis + 1])


def _shuffle(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    """Blocks of channels to blocks of pixels, or back."""
    *front, channels, height, width = recorder.dimensions(recorder.like(a.self).shape)
    at = len(front)
    if a.name == "pixel_shuffle":
        n = a.upscale_factor
        split, order = [*front, channels // (n * n), n, n, height, width], (0, 3, 1, 4, 2)
    else:
        n = a.downscale_factor
        split, order = [*front, channels, height // n, n, width // n, n], (0, 2, 4, 1, 3)
    parts = recorder.emit("reshape", a.self, shape=split)
    turned = recorder.emit("permute", parts, axes=[*range(at), *(at + place for place in order)])
    return recorder.emit("reshape", turned, shape=recorder.dimensions(shown.shape))


def _strided(recorder: Recorder, a: SimpleNamespace, shown: Any) -> Any:
    """What torch writes where strides of axes of size 1 differ."""
    own = recorder.like(a.self)
    axes = [axis for axis, size in enumerate(shown.shape) if size != 1]
    if own.shape != shown.shape or any(own.stride(axis) != shown.stride(axis) for axis in axes):
        raise UserError("as_strided", "a view by slice, permute, reshape or expand")
    return a.self


def _arange(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    start = number(getattr(a, "start", 0)) or 0
    step = number(getattr(a, "step", 1)) or 1
    shape, dtype = recorder.dimensions(shown.shape), element_type(shown)
    return recorder.emit("arange", shape=shape, start=start, step=step, dtype=dtype)


def _roll(recorder: Recorder, a: SimpleNamespace, shown: Any) -> str:
    if not a.dims:
        raise UserError("roll over all samples", "roll over named axes of one sample")
    return recorder.emit("roll", a.self, shifts=list(a.shifts), axes=list(a.dims))


SHAPES: dict[str, Converter] = {
    **dict.fromkeys(_SAME, _same), **dict.fromkeys(_RESHAPES, _reshape), "expand": _expand, "repeat": _repeat,
    **dict.fromkeys(("permute", "transpose", "t"), _permute), "slice": _slice, "select": _select,
    **dict.fromkeys(("split", "split_with_sizes", "chunk"), _split), "unbind": _unbind, "stack": _stack,
    "cat": lambda recorder, a, shown: recorder.emit("concat", *a.tensors, axis=a.dim),
    **dict.fromkeys(("slice_scatter", "select_scatter"), _put_slice), **dict.fromkeys(("copy", "fill"), _copy),
    **dict.fromkeys(("index", "index_put"), _index),
    "constant_pad_nd": _pad,
    **{f"{kind}_pad{n}d": _pad for kind in ("reflection", "replication") for n in (1, 2, 3)},
    **dict.fromkeys(("scatter", "scatter_reduce"), _scatter), "unfold": _windows, "as_strided": _strided,
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle"), _shuffle), "arange": _arange,
    "embedding": lambda recorder, a, shown: recorder.emit("embedding", a.weight, a.indices), "roll": _roll,
    "flip": lambda recorder, a, shown: recorder.emit("flip", a.self, axes=list(a.dims)),
    **{name: _taken(name) for name in ("gather", "index_select", "scatter_add", "index_add")},
    **{f"max_pool{n}d_with_indices": _pool("max_pool") for n in (2, 3)},
    **{f"avg_pool{n}d": _pool("avg_pool") for n in (1, 2, 3)},
    **{f"_adaptive_avg_pool{n}d": _adaptive for n in (2, 3)},
    **{f"adaptive_{kind}_pool{n}d": _adaptive for kind in ("avg", "max") for n in (1, 2, 3)},
    **{f"upsample_nearest{n}d": _interpolate("nearest") for n in (1, 2, 3)},
    **{f"upsample_{name}": _interpolate("linear") for name in ("linear1d", "bilinear2d", "trilinear3d")},
    **dict.fromkeys(("full", "full_like", "ones", "zeros", "ones_like", "zeros_like", "empty", "empty_like",
                    "empty_permuted", "new_zeros", "new_ones", "new_full"), _full),
    **dict.fromkeys(("_to_copy", "to"), _cast),
}  # fmt: skip
