"""The engine's random numbers from one call into C: as tensor operations, hashing costs more than a small network."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from fewer.core.seed import Stream, name_key
from fewer.sparse.call_recorder import note
from fewer.sparse.pattern import has_kernels, kernels

__all__ = ["CompiledStream"]

_BITS24 = 1.0 / (1 << 24)


class CompiledStream(Stream):
    """Draws the same bits as `Stream`, on a CPU."""

    def _drawn(self, name: str, count: int, offset: float, scale: float) -> Tensor:
        """(count,) of (24 random bits + offset) * scale."""
        drawn = torch.empty(count, dtype=self.dtype)
        call = partial(
            kernels.draw, self.dtype is torch.float64, self.seed.data_ptr(), self.step.data_ptr(),
            name_key(name), count, offset, scale, drawn.data_ptr(),
        )  # fmt: skip
        call()
        note("draw", call, (self.seed, self.step), (drawn,))
        return drawn

    def _serves(self) -> bool:
        return self.dtype in (torch.float32, torch.float64) and has_kernels(torch.empty(0, dtype=self.dtype))

    def uniform(self, name: str, shape: tuple[int, ...]) -> Tensor:
        if not self._serves():
            return super().uniform(name, shape)
        return self._drawn(name, math.prod(shape), 0.0, _BITS24).reshape(shape)

    def normal(self, name: str, shape: tuple[int, ...]) -> Tensor:
        if not self._serves():
            return super().normal(name, shape)
        radius = self._drawn(name + "/radius", math.prod(shape), 1.0, _BITS24)
        angle = self._drawn(name + "/angle", math.prod(shape), 0.0, 2 * math.pi * _BITS24)
        return (radius.log_().mul_(-2).sqrt_() * angle.cos_()).reshape(shape)
