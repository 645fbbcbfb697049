"""Which weights of a convolution are kept, and where its kernels find what they read in images of one size.

Images lie in planes with zeros between their rows (`kernels/train_planes.h` explains it), so that a kept weight is one
distance. Distances along the three axes and phases of strides are those of the packs' images, in
`fewer.packs.images.layout`; here nothing but one convolution shares them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from fewer.core.errors import UserError
from fewer.sparse.call_recorder import note
from fewer.sparse.pattern import has_kernels, kernels, starts, threads_for

__all__ = ["Filters", "Planes", "Window"]

Three = tuple[int, int, int]
Array = np.ndarray[Any, np.dtype[np.int32]]

_ROOM = 256  # places that a block of vectors may reach past the last one
_CACHED = 384 * 1024  # bytes of planes that are worked on at once: what a second-level cache holds beside other things
_MOST_IMAGES = 64
_SIZES = 8  # of images that a layer remembers


def three(numbers: Sequence[int], missing: int) -> Three:
    """Numbers of one to three axes as those of three."""
    first, second, third = (missing,) * (3 - len(numbers)) + tuple(numbers)
    return first, second, third


@dataclass(frozen=True)
class Window:
    """How a convolution steps over an image, along one to three axes."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]  # zeros before and behind each axis
    dilation: tuple[int, ...]
    groups: int = 1

    def made(self, kernel: Sequence[int], size: Sequence[int]) -> tuple[int, ...]:
        """The size of the output."""
        axes = zip(size, kernel, self.stride, self.padding, self.dilation)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in axes)


_known: WeakValueDictionary[tuple[Any, ...], Filters] = WeakValueDictionary()


class Filters:
    """The kept weights of one convolution, in row-major order; never changes, so copies of a network share it."""

    def __init__(self, mask: Tensor, window: Window) -> None:
        kept = mask.detach().cpu().numpy()
        self.shape, self.window = tuple(mask.shape), window
        self.out_channels, self.in_channels = kept.shape[0], kept.shape[1] * window.groups
        self.place = np.flatnonzero(kept).astype(np.int64)
        self.kept = len(self.place)
        self._sizes: dict[tuple[int, ...], Planes] = {}

    @classmethod
    def of(cls, mask: Tensor, window: Window) -> Filters:
        """Those of a mask (out, in / groups, *kernel); equal masks give the same object."""
        if not 3 <= mask.dim() <= 5 or mask.dtype != torch.bool:
            raise UserError(f"a mask of shape {tuple(mask.shape)} and {mask.dtype}", "3 to 5 axes and torch.bool")
        bits = np.packbits(mask.detach().cpu().numpy())
        key = (tuple(mask.shape), window, hashlib.sha256(bits.tobytes()).digest())
        found = _known.get(key)
        if found is None:
            found = _known[key] = cls(mask, window)
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Filters:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Filters.of, (self.mask(), self.window)

    def mask(self) -> Tensor:
        """(out, in / groups, *kernel)."""
        kept = np.zeros(math.prod(self.shape), dtype=bool)
        kept[self.place] = True
        return torch.from_numpy(kept).reshape(self.shape)

    def at(self, size: tuple[int, ...]) -> Planes:
        """What the kernels need for images of this size."""
        found = self._sizes.get(size)
        if found is None:
            if len(self._sizes) >= _SIZES:
                del self._sizes[next(iter(self._sizes))]
            found = self._sizes[size] = Planes(self, size)
        return found


class Planes:
    """One convolution of images of one size, as the kernels see it: a chain of one layer to `apply_chain`."""

    relu = (False,)

    def __init__(self, filters: Filters, size: tuple[int, ...]) -> None:
        self.kept, self.shape, self.window = filters.kept, filters.shape, filters.window
        self.place = filters.place
        self.inside = (filters.in_channels, *size)
        self.made = (filters.out_channels, *self.window.made(self.shape[2:], size))
        if min(self.made[1:]) < 1:
            raise UserError(f"images of {'x'.join(map(str, size))}", "at least as large as the kernel", "pad them")
        self.sizes = [self.kept, filters.out_channels]
        self.work = max(1, self.kept * math.prod(self.made[1:]))
        self.layout, self.arrays = self._laid_out(size)  # whose addresses the kernels keep
        addresses = (array.ctypes.data for array in self.arrays)
        self.plan = kernels.planes((*self.layout, *addresses)) if kernels else None

    @property
    def patterns(self) -> tuple[Planes]:
        """As of a chain."""
        return (self,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Planes:
        return self

    def _laid_out(self, size: tuple[int, ...]) -> tuple[tuple[int | Three, ...], tuple[Array, ...]]:
        """Where planes and the places in them lie, and which of them each kept weight reads, by rows and by planes."""
        window, kernel = self.window, three(self.shape[2:], 1)
        stride, padding, dilation = three(window.stride, 1), three(window.padding, 0), three(window.dilation, 1)
        inside, made = three(size, 1), three(self.made[1:], 1)
        # of each tap of each axis: how many places away it reads, and of which phase
        away, phase = zip(*(divmod(np.arange(k) * d - p, s) for k, s, p, d in zip(kernel, stride, padding, dilation)))
        steps = [  # rows share their zeros: the end of one is the beginning of the next
            max(-(-n // s) + max(0, -int(a.min())), m + max(0, int(a.max())))
            for n, s, m, a in zip(inside, stride, made, away)
        ]
        place = np.stack(np.unravel_index(self.place, (self.shape[0], self.shape[1], *kernel)))
        which, distance_to = np.zeros((2, self.kept), np.int64)
        for axis in range(3):
            which = which * stride[axis] + phase[axis][place[2 + axis]]
            distance_to = distance_to * steps[axis] + away[axis][place[2 + axis]]
        row, phases = place[0], math.prod(stride)
        channel = row // (self.shape[0] // window.groups) * self.shape[1] + place[1]
        plane = channel * phases + which
        reach = int(np.abs(distance_to).max(initial=0))
        origin, image = -(-reach // 16) * 16, math.prod(steps)
        planes = self.inside[0] * phases
        each = (planes + self.shape[0]) * image * 4
        images = min(_MOST_IMAGES, max(1, _CACHED // each))
        # an odd number of vectors, since powers of two would meet in the cache
        vectors = -(-(origin + images * image + reach + _ROOM) // 16)
        distance = 16 * (vectors + 1 - vectors % 2)
        if max(planes, self.shape[0]) * distance >= 2**31 or self.kept >= 2**31:
            raise UserError(f"images of {size} in {self.inside[0]} channels", "fewer than 2**31 places", "cut them")
        order = np.lexsort((row, plane))
        arrays = (
            starts(row, self.shape[0]), (plane * distance + distance_to).astype(np.int32), starts(plane, planes),
            (row * distance - distance_to)[order].astype(np.int32), order.astype(np.int32),
        )  # fmt: skip
        sizes = (planes, self.shape[0], self.kept, self.inside[0], images, origin, distance)
        return (*sizes, (steps[0], steps[1], steps[2]), inside, made, stride), arrays

    def threads(self, samples: int) -> int:
        """How many are worth starting."""
        return threads_for(samples * self.work)

    def _call(self, function: Any, *numbers: int) -> None:
        function(self.plan, *numbers)  # by way of self: whoever records the call keeps the arrays alive

    def forward(self, x: Tensor, weights: tuple[Tensor | None, ...], threads: int, *, hidden: None = None) -> Tensor:
        """Outputs (samples, out, ...); `weights` are values and bias."""
        x = x.contiguous()
        y = x.new_empty((len(x), *self.made))
        if len(x):
            call = partial(
                self._call, kernels.convolve, x.dtype is torch.float64, threads, len(x), x.data_ptr(), y.data_ptr(),
                *[0 if weight is None else weight.data_ptr() for weight in weights],
            )  # fmt: skip
            call()
            note("convolution", call, (x, *weights), (y,))
        return y

    def backward(
        self,
        gy: Tensor,
        x: Tensor,
        weights: tuple[Tensor | None, ...],
        threads: int,
        *,
        hidden: None = None,
        y: None = None,
        wants: tuple[bool, bool],
    ) -> tuple[Tensor | None, list[Tensor | None]]:
        """Gradients of the input and of the weights, whichever `wants` asks for."""
        gy, samples = gy.contiguous(), len(gy)
        x = x.contiguous() if wants[1] else x
        gx = gy.new_empty((samples, *self.inside)) if wants[0] else None
        flat = gy.new_empty(sum(self.sizes)) if wants[1] else None
        if samples:
            values = weights[0]
            call = partial(
                self._call, kernels.convolve_back, gy.dtype is torch.float64, threads, samples, x.data_ptr(),
                gy.data_ptr(), 0 if values is None else values.data_ptr(), 0 if gx is None else gx.data_ptr(),
                0 if flat is None else flat.data_ptr(),
            )  # fmt: skip
            call()
            note("convolution_backward", call, (x, gy, values), (gx, flat))
        if flat is None:
            return gx, [None, None]
        if not samples:
            flat.zero_()
        of_values, of_bias = flat.split_with_sizes(self.sizes)
        return gx, [of_values, None if weights[1] is None else of_bias]

    def multiply(self, values: Tensor, x: Tensor, transposed: bool) -> Tensor:
        """Through the kept weights without a bias, or back to a gradient of the input when transposed."""
        self._check(x, self.made if transposed else self.inside, values, self.kept)
        if not has_kernels(x):
            return self._torch_multiply(values, x, transposed)
        weights = values.contiguous(), None
        if not transposed:
            return self.forward(x, weights, self.threads(len(x)))
        gx, _ = self.backward(x, x, weights, self.threads(len(x)), wants=(True, False))
        assert gx is not None
        return gx

    def dot(self, g: Tensor, x: Tensor) -> Tensor:
        """The gradient of the kept weights from that of the output and the input."""
        self._check(x, self.inside, g, len(x) * math.prod(self.made))
        self._check(g, self.made, x, len(g) * math.prod(self.inside))
        if not has_kernels(x):
            weight = x.new_zeros(self.shape)
            return self._torch_backward(g, x, weight, (False, True))[1].reshape(-1)[self._places(x)]
        _, (values, _) = self.backward(g, x, (None, None), self.threads(len(x)), wants=(False, True))
        assert values is not None
        return values

    def _check(self, x: Tensor, shape: tuple[int, ...], other: Tensor, size: int) -> None:
        """The kernels read by address: what does not fit must not reach them."""
        if x.shape[1:] != shape or other.numel() != size or other.dtype is not x.dtype:
            given = f"tensors of shapes {tuple(x.shape)} and {tuple(other.shape)}, {x.dtype} and {other.dtype}"
            raise UserError(given, f"(samples, {', '.join(map(str, shape))}) and {size} numbers of the same type")

    def _places(self, x: Tensor) -> Tensor:
        return torch.from_numpy(self.place).to(x.device)

    def _torch_multiply(self, values: Tensor, x: Tensor, transposed: bool) -> Tensor:
        """By torch's own kernels, with zeros in place of the pruned weights."""
        weight = values.new_zeros(math.prod(self.shape)).index_put((self._places(x),), values).reshape(self.shape)
        if transposed:
            return self._torch_backward(x, x.new_zeros((len(x), *self.inside)), weight, (True, False))[0]
        w = self.window
        none = [0] * len(w.stride)
        result: Tensor = torch.ops.aten.convolution(
            x, weight, None, w.stride, w.padding, w.dilation, False, none, w.groups
        )
        return result

    def _torch_backward(self, gy: Tensor, x: Tensor, weight: Tensor, wants: tuple[bool, bool]) -> tuple[Tensor, Tensor]:
        w = self.window
        found = torch.ops.aten.convolution_backward(
            gy, x, weight, None, w.stride, w.padding, w.dilation, False, [0] * len(w.stride), w.groups, (*wants, False)
        )
        return found[0], found[1]
