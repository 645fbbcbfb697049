"""Randomness as a function: counter-based numbers from (seed, step, name), and data orders from (seed, position).

Everything is integer arithmetic on tensors, so it runs under vmap and inside a captured CUDA graph, gives the same
numbers on every device, and needs no state to be saved: a killed run goes on to the bit.
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Stream", "name_key", "shuffled", "torch_seed"]

_BITS24 = 1.0 / (1 << 24)


def _signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_MULTIPLY_1 = _signed(0xBF58476D1CE4E5B9)
_MULTIPLY_2 = _signed(0x94D049BB133111EB)


def name_key(name: str) -> int:
    """A signed 64-bit number for a name, the same in every process; compilers, which cannot hash, take it as given."""
    return _hashed(name)


# what torch.compiler.assume_constant_result does, which imports the compiler: seconds of every start
name_key._dynamo_marked_constant = True  # type: ignore[attr-defined]


@functools.cache
def _hashed(name: str) -> int:
    return _signed(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"))


def torch_seed(seed: int, name: str) -> int:
    """A non-negative seed for torch.manual_seed, separate per purpose."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _shift(x: Tensor, by: int, bits: int) -> Tensor:
    """Logical right shift; torch's own is arithmetic."""
    return (x >> by) & ((1 << (bits - by)) - 1)


def _mix64(x: Tensor) -> Tensor:
    x = (x ^ _shift(x, 30, 64)) * _MULTIPLY_1
    x = (x ^ _shift(x, 27, 64)) * _MULTIPLY_2
    return x ^ _shift(x, 31, 64)


def _mix32(x: Tensor) -> Tensor:
    x = (x ^ _shift(x, 16, 32)) * 0x7FEB352D
    x = (x ^ _shift(x, 15, 32)) * _signed(0x846CA68B, 32)
    return x ^ _shift(x, 16, 32)


@dataclass(frozen=True)
class Stream:
    """The engine's `Noise`: one replica at one step. `seed` and `step` are scalar int64 tensors."""

    seed: Tensor
    step: Tensor
    dtype: torch.dtype = torch.float32

    def _bits(self, name: str, count: int) -> Tensor:
        """(count,) of 24 random bits, as int32."""
        key = _mix64(_mix64(self.seed * _GOLDEN + self.step) ^ name_key(name))
        low, high = key.to(torch.int32), (key >> 32).to(torch.int32)
        counter = torch.arange(count, dtype=torch.int32, device=self.step.device)
        return _shift(_mix32(_mix32(counter + low) ^ high), 8, 32)

    def uniform(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """In [0, 1), on a grid of 2^-24."""
        return (self._bits(name, math.prod(shape)).to(self.dtype) * _BITS24).reshape(shape)

    def normal(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Standard normal by Box and Muller's transform."""
        count = math.prod(shape)
        radius = (self._bits(name + "/radius", count) + 1).to(self.dtype) * _BITS24
        angle = self._bits(name + "/angle", count).to(self.dtype) * (2 * math.pi * _BITS24)
        return (torch.sqrt(-2 * torch.log(radius)) * torch.cos(angle)).reshape(shape)


def _round(half: Tensor, key: Tensor) -> Tensor:
    """31 bits that look random: a little lighter than a whole mix, as several rounds follow each other."""
    x = half * _GOLDEN + key
    x = (x ^ _shift(x, 30, 64)) * _MULTIPLY_1
    return _shift((x ^ _shift(x, 27, 64)) * _MULTIPLY_2, 33, 64)


@functools.cache
def _factors(count: int) -> tuple[int, int]:
    """Two numbers near the square root whose product covers `count` with least excess."""
    root = math.isqrt(count - 1) + 1 if count > 1 else 1
    candidates = range(max(1, root // 3), root + 1)
    return min(((a, -(-count // a)) for a in candidates), key=lambda ab: (ab[0] * ab[1] - count, ab[1]))


def shuffled(seed: Tensor, position: Tensor, count: int) -> Tensor:
    """The sample at each position of an endless sequence of epochs, every epoch its own permutation of range(count).

    A Feistel network over a x b >= count, walked until it lands inside: no table, no state, any position at once.
    """
    a, b = _factors(count)
    epoch = torch.div(position, count, rounding_mode="floor")
    value = position - epoch * count
    key = _mix64(seed * _GOLDEN + epoch * _MULTIPLY_1)
    for walk in range(1 + min(a * b - count, 16)):
        left, right = torch.div(value, b, rounding_mode="floor"), value % b
        for turn in range(3):
            left = (left + _round(right, key + 2 * turn)) % a
            right = (right + _round(left, key + 2 * turn + 1)) % b
        moved = left * b + right
        value = moved if walk == 0 else torch.where(value >= count, moved, value)
    return value % count
