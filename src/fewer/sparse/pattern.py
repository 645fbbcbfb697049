"""Which positions of a weight matrix are kept, and the compiled kernels that work on them."""

from __future__ import annotations

import hashlib
import logging
import warnings
from functools import cached_property, partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from fewer.core.errors import UserError
from fewer.sparse.call_recorder import note, recording

try:
    from fewer.sparse import _train
except ImportError:
    _train = None  # type: ignore[assignment]
    logging.getLogger(__name__).info("compiled sparse kernels are missing: torch's CSR kernels serve, slower")

__all__ = ["Chain", "Pattern", "has_kernels", "kernels", "starts", "threads_for"]

kernels = _train
_known: WeakValueDictionary[tuple[int, int, bytes], Pattern] = WeakValueDictionary()


class Pattern:
    """The kept positions of one weight matrix, by rows and by columns; never changes, so copies of a network share it.

    Kept weights are in row-major order. `order` finds them when columns are walked instead.
    """

    def __init__(self, mask: Tensor) -> None:
        kept = mask.detach().cpu().numpy()
        self.out_features, self.in_features = (int(size) for size in kept.shape)
        rows, columns = np.nonzero(kept)
        self.kept = len(rows)
        if self.kept >= 2**31:
            raise UserError(f"{self.kept} kept weights in one layer", "fewer than 2**31", "split the layer")
        self.wide = max(kept.shape) > 2**16
        index = np.int32 if self.wide else np.uint16
        order = np.lexsort((rows, columns))
        self.row_start = starts(rows, self.out_features)
        self.column = columns.astype(index)
        self.column_start = starts(columns, self.in_features)
        self.row = rows[order].astype(index)
        self.order = order.astype(np.int32)

    @classmethod
    def of(cls, mask: Tensor) -> Pattern:
        """The pattern of a (out, in) mask; equal masks give the same object."""
        if mask.dim() != 2 or mask.dtype != torch.bool:
            raise UserError(f"a mask of shape {tuple(mask.shape)} and {mask.dtype}", "two axes and torch.bool")
        bits = np.packbits(mask.detach().cpu().numpy())
        key = (mask.shape[0], mask.shape[1], hashlib.sha256(bits.tobytes()).digest())
        found = _known.get(key)
        if found is None:
            found = _known[key] = cls(mask)
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Pattern:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern.of, (self.mask(),)

    @property
    def index_bytes(self) -> int:
        """Memory of the positions."""
        arrays = (self.row_start, self.column, self.column_start, self.row, self.order)
        return sum(array.nbytes for array in arrays)

    def mask(self) -> Tensor:
        """The (out, in) mask."""
        kept = np.zeros((self.out_features, self.in_features), dtype=bool)
        kept[self._rows(), self.column] = True
        return torch.from_numpy(kept)

    def positions(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Row and column of each kept weight."""
        rows, columns = self._rows(), self.column.astype(np.int64)
        return torch.from_numpy(rows).to(device), torch.from_numpy(columns).to(device)

    def _rows(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.repeat(np.arange(self.out_features), np.diff(self.row_start))

    def layer(self, *, relu: bool) -> tuple[int, ...]:
        """What the kernels read of this layer; the arrays must outlive the plan that holds their addresses."""
        arrays = (self.row_start, self.column, self.column_start, self.row, self.order)
        addresses = tuple(array.ctypes.data for array in arrays)
        return (self.in_features, self.out_features, self.kept, int(relu), int(self.wide), *addresses)

    def multiply(self, values: Tensor, x: Tensor, transposed: bool) -> Tensor:
        """(samples, in) to (samples, out) through kept weights, or back to (samples, in) when transposed."""
        self._check(x, self.out_features if transposed else self.in_features, values, self.kept)
        if not has_kernels(x):
            return self._torch_multiply(values, x, transposed)
        values, chain = values.contiguous(), self.alone
        if not transposed:
            return chain.forward(x, (values, None), chain.threads(x.shape[0]))
        gx, _ = chain.backward(x, x, (values, None), chain.threads(x.shape[0]), wants=(True, False))
        assert gx is not None
        return gx

    def dot(self, g: Tensor, x: Tensor) -> Tensor:
        """(samples, out) and (samples, in) to one product per kept position, summed over the samples."""
        self._check(x, self.in_features, g, g.shape[0] * self.out_features)
        self._check(g, self.out_features, x, g.shape[0] * self.in_features)
        if not has_kernels(x):
            rows, columns = self.positions(x.device)
            return (g.t() @ x)[rows, columns]
        chain = self.alone
        _, (values, _) = chain.backward(g, x, (None, None), chain.threads(x.shape[0]), wants=(False, True))
        assert values is not None
        return values

    def _check(self, x: Tensor, features: int, other: Tensor, size: int) -> None:
        """The kernels read by address: what does not fit must not reach them."""
        if x.dim() != 2 or x.shape[1] != features or other.numel() != size or other.dtype is not x.dtype:
            given = f"tensors of shapes {tuple(x.shape)} and {tuple(other.shape)}, {x.dtype} and {other.dtype}"
            raise UserError(given, f"(samples, {features}) and {size} numbers of the same type")

    def _torch_multiply(self, values: Tensor, x: Tensor, transposed: bool) -> Tensor:
        """The product by torch's own kernels: CSR on a CPU, a dense matrix elsewhere."""
        rows, columns = self.positions(x.device)
        shape = (self.out_features, self.in_features)
        if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
            dense = values.new_zeros(shape).index_put((rows, columns), values)
            return x @ dense if transposed else x @ dense.t()
        begin, index = torch.from_numpy(self.row_start).long(), columns
        if transposed:
            order = torch.from_numpy(self.order).long()
            begin, index, values = torch.from_numpy(self.column_start).long(), rows[order], values[order]
            shape = shape[::-1]
        with warnings.catch_warnings():  # torch announces once that CSR tensors are in beta
            warnings.simplefilter("ignore")
            matrix = torch.sparse_csr_tensor(begin, index, values, shape)
        return (matrix @ x.t()).t()

    @cached_property
    def alone(self) -> Chain:
        """This layer as a chain of one, without relu."""
        return Chain((self,), (False,))


def starts(index: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Where each of `size` groups begins, of sorted numbers of groups; the end of the last one behind them."""
    counts = np.bincount(index, minlength=size)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def threads_for(work: int) -> int:
    """Starting a thread takes as long as about a million multiplications."""
    most = torch.get_num_threads()
    return 1 if most == 1 else max(1, min(most, work // 1_000_000))


def has_kernels(x: Tensor) -> bool:
    """Whether the compiled kernels can work on this tensor."""
    return kernels is not None and x.is_cpu and (x.dtype is torch.float32 or x.dtype is torch.float64)


class Room:
    """A tensor that goes back to its owner's list when the graph that holds it is gone.

    Each step needs the same few large buffers; taken from the system anew, their pages would be cleared anew.
    """

    __slots__ = ("free", "tensor")

    def __init__(self, free: list[Tensor], tensor: Tensor) -> None:
        self.free, self.tensor = free, tensor

    def __del__(self) -> None:
        if len(self.free) < 2:
            self.free.append(self.tensor)


class Chain:
    """Sparse layers with an optional relu after each, as the kernels see them; outputs are feature-major.

    A (samples, features) result is the transpose of a contiguous (features, samples) tensor, so elementwise
    operations keep its layout. Inputs may have any strides.
    """

    def __init__(self, patterns: tuple[Pattern, ...], relu: tuple[bool, ...]) -> None:
        self.patterns, self.relu = patterns, relu
        self.plan = kernels.plan([p.layer(relu=r) for p, r in zip(patterns, relu)]) if kernels else None
        self.in_features, self.out_features = patterns[0].in_features, patterns[-1].out_features
        self.hidden_features = sum(p.out_features for p in patterns[:-1])
        self.work = max(1, sum(p.kept for p in patterns))
        self.sizes = [size for p in patterns for size in (p.kept, p.out_features)]
        self.free: list[Tensor] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Chain:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Chain, (self.patterns, self.relu)

    def threads(self, samples: int) -> int:
        """How many are worth starting."""
        return threads_for(samples * self.work)

    def forward(
        self, x: Tensor, weights: tuple[Tensor | None, ...], threads: int, *, hidden: Tensor | None = None
    ) -> Tensor:
        """Outputs of (samples, features); `weights` are values and bias of each layer in turn."""
        samples = x.shape[0]
        y = x.new_empty_strided((samples, self.out_features), (1, samples))
        if samples:
            call = partial(
                kernels.forward, self.plan, x.dtype is torch.float64, threads, samples,
                x.data_ptr(), x.stride(1), x.stride(0), y.data_ptr(), 0 if hidden is None else hidden.data_ptr(),
                *[0 if weight is None else weight.data_ptr() for weight in weights],
            )  # fmt: skip
            call()
            note("chain", call, (x, *weights), (y, hidden))
        return y

    def room(self, x: Tensor, threads: int) -> Room:
        """Memory for the activations between the layers."""
        size = self.hidden_features * kernels.padded(x.dtype is torch.float64, threads, x.shape[0])
        if recording():  # a repeated step needs memory that nobody else is given
            return Room([], x.new_empty(size))
        tensor = self.free.pop() if self.free else None
        if tensor is None or tensor.numel() != size or tensor.dtype is not x.dtype:
            tensor = x.new_empty(size)
        return Room(self.free, tensor)

    def backward(
        self,
        gy: Tensor,
        x: Tensor,
        weights: tuple[Tensor | None, ...],
        threads: int,
        *,
        hidden: Tensor | None = None,
        y: Tensor | None = None,
        wants: tuple[bool, bool],
    ) -> tuple[Tensor | None, list[Tensor | None]]:
        """Gradients of the input and of the weights, whichever `wants` asks for; `y` if a relu comes last."""
        samples = x.shape[0]
        gx = gy.new_empty_strided((samples, self.in_features), (1, samples)) if wants[0] else None
        flat = gy.new_empty(sum(self.sizes)) if wants[1] else None
        if samples:
            call = partial(
                kernels.backward, self.plan, gy.dtype is torch.float64, threads, samples,
                x.data_ptr(), x.stride(1), x.stride(0), gy.data_ptr(), gy.stride(1), gy.stride(0),
                0 if y is None else y.data_ptr(), 0 if hidden is None else hidden.data_ptr(),
                0 if gx is None else gx.data_ptr(), 0 if flat is None else flat.data_ptr(),
                *[0 if value is None else value.data_ptr() for value in weights[::2]],
            )  # fmt: skip
            call()
            note("chain_backward", call, (x, gy, y, hidden, *weights[::2]), (gx, flat))
        if flat is None:
            return gx, [None] * len(weights)
        if not samples:
            flat.zero_()
        parts = flat.split_with_sizes(self.sizes)
        return gx, [None if w is None and i % 2 else part for i, (w, part) in enumerate(zip(weights, parts))]
