"""The layers of a program in numpy: products, convolutions, norms, attention, pools and resizing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from fewer.packs.program import PackError
from fewer.packs.runtime.ops import ELEMENTWISE, SHAPES, Array, allowed, mean
from fewer.packs.runtime.recurrent import RECURRENT

__all__ = ["COLUMNS", "OPERATIONS", "between", "sources", "unfolded"]

COLUMNS = 1 << 24  # numbers that a convolution copies into windows at a time


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x W^T + b over the last axis."""
    y: Array = x @ weight.T
    return y if bias is None else y + bias


def softmax(x: Array, *, axis: int) -> Array:
    """Shares that sum to 1 along an axis."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(e / e.sum(axis=axis, keepdims=True))


def log_softmax(x: Array, *, axis: int) -> Array:
    """The logarithm of softmax, exact where the shares underflow."""
    z = x - x.max(axis=axis, keepdims=True)
    return np.asarray(z - np.log(np.exp(z).sum(axis=axis, keepdims=True)))


def attention(
    q: Array, k: Array, v: Array, mask: Array | None = None, *, causal: bool, scale: float | None = None
) -> Array:
    """softmax(q k^T scale + mask) v over the last two axes; a boolean mask says what may be seen."""
    factor = np.float32(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    scores = (q * factor) @ np.swapaxes(k, -1, -2)
    if causal:
        mask = np.tril(np.ones(scores.shape[-2:], dtype=np.bool_))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    return np.asarray(softmax(scores, axis=-1) @ v, dtype=q.dtype)


def _channels(value: Array, ndim: int) -> Array:
    return value.reshape((1, -1) + (1,) * (ndim - 2))


def batch_norm(x: Array, mean: Array, variance: Array, *affine: Array, epsilon: float) -> Array:
    """(x - mean) / sqrt(variance + epsilon) per channel, axis 1, then weight and bias."""
    scale = 1 / np.sqrt(variance + np.float32(epsilon))
    if affine:
        scale = scale * affine[0]
    y = (x - _channels(mean, x.ndim)) * _channels(scale, x.ndim)
    return y + _channels(affine[1], x.ndim) if len(affine) > 1 else y


def layer_norm(x: Array, *affine: Array, axes: int, epsilon: float) -> Array:
    """Zero mean and unit variance over the last `axes` axes, then weight and bias."""
    last = range(x.ndim - axes, x.ndim)
    centred = x - mean(x, axes=last, keep=True)
    y = centred / np.sqrt(mean(centred * centred, axes=last, keep=True) + np.float32(epsilon))
    for apply, value in zip((np.multiply, np.add), affine):
        y = apply(y, value)
    return np.asarray(y)


def group_norm(x: Array, *affine: Array, groups: int, epsilon: float) -> Array:
    """Zero mean and unit variance within each sample's groups of channels; instance norm has a group per channel."""
    grouped = x.reshape(x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    y = layer_norm(grouped, axes=1, epsilon=epsilon).reshape(x.shape)
    for apply, value in zip((np.multiply, np.add), affine):
        y = apply(y, _channels(value, x.ndim))
    return y


def unfolded(x: Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Array:
    """Windows of x (samples, channels, *places) as a view (samples, channels, *outputs, *kernel)."""
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    if any(n < r or k < 1 for n, r, k in zip(x.shape[2:], reach, kernel)) or min(*stride, *dilation) < 1:
        raise PackError(f"a window of {reach} on {x.shape[2:]}", "a window that fits, and steps of at least 1")
    axes = tuple(range(2, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, axis=axes)  # type: ignore[call-overload]
    places = tuple(slice(None, None, s) for s in stride) + tuple(slice(None, None, d) for d in dilation)
    view: Array = windows[(slice(None), slice(None), *places)]
    return view


def _padded(x: Array, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Array:
    if not any(before) and not any(after):
        return x
    if min(*before, *after) < 0:
        raise PackError("negative padding", "padding of at least 0")
    pairs = [(0, 0), (0, 0), *zip(before, after)]
    allowed([n + a + b for n, (a, b) in zip(x.shape, pairs)])
    return np.pad(x, pairs, constant_values=value)


def conv(
    x: Array, weight: Array, bias: Array | None = None, *, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int, transposed: bool, output_padding: Sequence[int],
) -> Array:  # fmt: skip
    """A convolution in any number of dimensions, or the transposed one."""
    if transposed:
        y = _transposed(x, weight, stride, padding, dilation, groups, output_padding)
    else:
        windows = unfolded(_padded(x, padding, padding), weight.shape[2:], stride, dilation)
        y = _products(windows, weight, groups)
    return y if bias is None else y + _channels(bias, x.ndim)


def _products(windows: Array, weight: Array, groups: int) -> Array:
    """Windows (samples, channels, *places, *kernel) times weights, by samples or by places where they are many."""
    axes = (0, *range(2, weight.ndim))
    axis = next((axis for axis in axes if windows.shape[axis] > 1), None)
    if windows.size <= COLUMNS or axis is None:
        return _multiplied(windows, weight, groups)
    count = windows.shape[axis]
    some, before = max(1, COLUMNS * count // windows.size), (slice(None),) * axis
    parts = [_products(windows[(*before, slice(i, i + some))], weight, groups) for i in range(0, count, some)]
    return np.concatenate(parts, axis=axis)


def _multiplied(windows: Array, weight: Array, groups: int) -> Array:
    outputs, inputs, *kernel = weight.shape
    samples, rank = len(windows), len(kernel)
    places = windows.shape[2 : 2 + rank]
    # (groups, samples * places, channels * kernel): one product per group
    split = windows.reshape(samples, groups, inputs, *windows.shape[2:])
    order = (1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))
    columns = split.transpose(order).reshape(groups, samples * math.prod(places), inputs * math.prod(kernel))
    product = columns @ weight.reshape(groups, outputs // groups, -1).transpose(0, 2, 1)
    y = product.reshape(groups, samples, *places, outputs // groups)
    return np.moveaxis(y, -1, 2).swapaxes(0, 1).reshape(samples, outputs, *places)


def _transposed(
    x: Array, weight: Array, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int,
    output_padding: Sequence[int],
) -> Array:  # fmt: skip
    samples, channels, *places = x.shape
    outputs, kernel = weight.shape[1], weight.shape[2:]
    full = [
        (n - 1) * s + d * (k - 1) + 1 + e for n, s, d, k, e in zip(places, stride, dilation, kernel, output_padding)
    ]
    y = np.zeros(allowed((samples, groups, outputs, *full)), dtype=x.dtype)
    columns = x.reshape(samples, groups, channels // groups, math.prod(places))
    by_group = weight.reshape(groups, channels // groups, outputs, *kernel)
    for position in itertools.product(*map(range, kernel)):
        part = by_group[(slice(None),) * 3 + position].transpose(0, 2, 1) @ columns
        target = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, n, s in zip(position, dilation, places, stride)
        )
        y[(slice(None),) * 3 + target] += part.reshape(samples, groups, outputs, *places)
    crop = tuple(slice(p, n - p) for p, n in zip(padding, full))
    return y.reshape(samples, groups * outputs, *full)[(slice(None), slice(None), *crop)]


def _pool_padding(
    x: Array, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], ceil: bool
) -> list[int]:
    """Padding after each axis: with `ceil` a last window may hang over, if it starts inside input or left padding."""
    after = []
    for n, k, s, p, d in zip(x.shape[2:], kernel, stride, padding, dilation):
        reach = d * (k - 1) + 1
        count = (n + 2 * p - reach) // s + 1
        if ceil and (n + 2 * p - reach) % s and count * s < n + p:
            count += 1
        after.append(max(p, (count - 1) * s + reach - n - p))
    return after


def max_pool(
    x: Array,
    *,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil: bool,
) -> Array:
    """The largest of each window."""
    after = _pool_padding(x, kernel, stride, padding, dilation, ceil)
    windows = unfolded(_padded(x, padding, after, -np.inf), kernel, stride, dilation)
    return np.asarray(windows.max(axis=tuple(range(-len(kernel), 0))))


def avg_pool(
    x: Array, *, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil: bool, count_padding: bool
) -> Array:
    """The mean of each window, over the places that count."""
    one, last = [1] * len(kernel), tuple(range(-len(kernel), 0))
    after = _pool_padding(x, kernel, stride, padding, one, ceil)
    total = unfolded(_padded(x, padding, after), kernel, stride, one).sum(axis=last)
    counted = np.ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    if count_padding:
        counted = _padded(counted, padding, padding, 1.0)
        after = [a - p for a, p in zip(after, padding)]
        counted = _padded(counted, [0] * len(kernel), after)
    else:
        counted = _padded(counted, padding, after)
    return np.asarray(total / unfolded(counted, kernel, stride, one).sum(axis=last))


def _adaptive(reduce: np.ufunc) -> Callable[..., Array]:
    def call(x: Array, *, size: Sequence[int]) -> Array:
        for axis, count in enumerate(size, start=x.ndim - len(size)):
            n, places = x.shape[axis], np.arange(count)
            first, last = (
                places * n // count,
                -(-(places + 1) * n // count),
            )  # windows overlap where sizes do not divide
            # every other part lies between windows; an end may be n, which wants one place more
            edges, room = np.stack([first, last], axis=1).reshape(-1), [(0, int(a == axis)) for a in range(x.ndim)]
            x = reduce.reduceat(np.pad(x, room), edges, axis=axis)[(*(slice(None),) * axis, slice(None, None, 2))]
            if reduce is np.add:
                x = np.asarray(x / (last - first).reshape((-1,) + (1,) * (x.ndim - axis - 1)), dtype=x.dtype)
        return x

    return call


def sources(n: int, count: int, scale: float | None, align: bool) -> Array:
    """Where on the input axis each output place lies."""
    places = np.arange(count, dtype=np.float64)
    if align:
        return places * ((n - 1) / (count - 1) if count > 1 else 0.0)
    step = 1 / scale if scale else n / count
    return np.maximum((places + 0.5) * step - 0.5, 0.0)


def between(n: int, count: int, mode: str, align: bool, scale: float | None) -> tuple[Array, Array | None]:
    """For each output place along an axis the one below it, and the share of the next one where places are mixed."""
    if mode == "nearest":
        step = np.float32(1 / scale if scale else n / count)
        return np.minimum((np.arange(count, dtype=np.float32) * step).astype(np.int64), n - 1), None
    if n == count and not scale:
        return np.arange(n), None
    source = sources(n, count, scale, align)
    low = np.minimum(source.astype(np.int64), n - 1)
    return low, source - low


def interpolate(
    x: Array, *, size: Sequence[int], mode: str, align_corners: bool, scales: Sequence[float] | None = None
) -> Array:
    """Resize the last axes; `mode` is nearest or linear (bilinear, trilinear), an axis at a time."""
    allowed([*x.shape[: x.ndim - len(size)], *size])
    if mode not in ("nearest", "linear"):
        raise PackError(f"interpolation {mode!r:.40}", "nearest or linear")
    for place, count in enumerate(size):
        axis, n = x.ndim - len(size) + place, x.shape[x.ndim - len(size) + place]
        low, share = between(n, count, mode, align_corners, scales[place] if scales else None)
        if share is None:
            x = np.take(x, low, axis=axis)
        else:
            part = share.astype(x.dtype).reshape((-1,) + (1,) * (x.ndim - axis - 1))
            x = np.take(x, low, axis=axis) * (1 - part) + np.take(x, np.minimum(low + 1, n - 1), axis=axis) * part
    return x


OPERATIONS: dict[str, Callable[..., Array]] = {
    **ELEMENTWISE, **SHAPES, **RECURRENT, "linear": linear, "matmul": np.matmul,
    "softmax": softmax, "log_softmax": log_softmax,
    "attention": attention, "batch_norm": batch_norm, "layer_norm": layer_norm, "group_norm": group_norm,
    "conv": conv, "max_pool": max_pool, "avg_pool": avg_pool, "adaptive_avg_pool": _adaptive(np.add),
    "adaptive_max_pool": _adaptive(np.maximum), "interpolate": interpolate,
}  # fmt: skip
