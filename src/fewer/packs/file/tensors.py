"""Tensors as entries and sections of a pack: masks once, values at kept positions only.

| kind | what is stored | what comes back |
|---|---|---|
| float32 | exponent and head of the mantissa coded, the rest as it is | the same bits |
| float16 | likewise, rounded to nearest | the rounded value, as float32 |
| int8 | a scale per row (eighths of an octave) and 8-bit multiples of it | the multiple, as float32 |
| raw | any other element type, compressed | the same bits |
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.packs.file.codec import decode_mask, decode_words, encode_mask, encode_words
from fewer.packs.program import PackError

__all__ = ["Array", "Decoder", "Encoder", "scale_of"]

Array = NDArray[Any]
_RAW = tuple("raw " + dtype for dtype in ("bool", "uint8", "int8", "int16", "int32", "int64", "float64"))
_WIDTH = {"float32": (32, 10), "float16": (16, 8), "int8": (8, 7)}  # bits of a word, bits that are modelled
_SCALE_ZERO, _SCALE_STEPS = 200, 8


def scale_of(code: Array) -> Array:
    """The step of a row from its code: eighths of an octave, 2^-25 to 2^6.9."""
    return np.exp2((np.asarray(code, dtype=np.float64) - _SCALE_ZERO) / _SCALE_STEPS).astype(np.float32)


def scale_code(step: Array) -> Array:
    """The smallest code whose step is at least `step`."""
    exact = np.log2(np.maximum(np.asarray(step, dtype=np.float64), 2.0**-25)) * _SCALE_STEPS + _SCALE_ZERO
    return np.ceil(exact - 1e-9).astype(np.int64)


def _plane(shape: tuple[int, ...]) -> tuple[int, int]:
    """A tensor seen as rows and columns: a vector is one row."""
    if len(shape) < 2:
        return 1, int(np.prod(shape, dtype=np.int64))
    return shape[0], int(np.prod(shape[1:], dtype=np.int64))


def _rotate(values: Array, kind: str) -> NDArray[np.uint32]:
    """The sign to the end, so that the exponent leads the word."""
    if kind == "int8":
        return (np.abs(values.astype(np.int32)) << 1 | (values < 0)).astype(np.uint32)
    bits = _WIDTH[kind][0]
    words = values.astype(kind).view(f"uint{bits}").astype(np.uint64)
    return ((words << np.uint64(1) | words >> np.uint64(bits - 1)) & np.uint64(2**bits - 1)).astype(np.uint32)


def _unrotate(words: NDArray[np.uint32], kind: str) -> Array:
    if kind == "int8":
        sizes = (words >> np.uint32(1)).astype(np.float32)
        return np.where(words & np.uint32(1), -sizes, sizes)
    bits = _WIDTH[kind][0]
    back = (words >> np.uint32(1) | words << np.uint32(bits - 1)).astype(f"uint{bits}")
    return back.view(kind).astype(np.float32, copy=False)


@dataclass
class Encoder:
    """Collects sections; equal masks are stored once."""

    sections: list[bytes] = field(default_factory=list)
    masks: list[list[int]] = field(default_factory=list)
    numbers: int = 0
    _known: dict[tuple[tuple[int, int], bytes], int] = field(default_factory=dict)

    def mask(self, mask: NDArray[np.bool_]) -> int:
        """The number of a mask, stored if it is new."""
        shape = (mask.shape[0], mask.shape[1])
        key = (shape, np.packbits(mask).tobytes())
        if key not in self._known:
            code = encode_mask(mask)
            self._known[key] = len(self.masks)
            self.masks.append([*shape, len(code)])
            self.sections.append(code)
            self.numbers += mask.size
        return self._known[key]

    def tensor(self, name: str, value: Array, mask: Array | None, kind: str, codes: Array | None) -> list[Any]:
        """The header's entry of a tensor; `codes` are the scale codes of an int8's rows, `value` its multiples."""
        shape = list(value.shape)
        self.numbers += value.size
        if kind == "raw":
            if f"raw {value.dtype}" not in _RAW:
                raise UserError(f"tensor {name} of {value.dtype}", "float32 or " + ", ".join(_RAW))
            packed = zlib.compress(np.ascontiguousarray(value).tobytes(), 9)
            self.sections.append(packed)
            return [name, shape, f"raw {value.dtype}", -1, len(packed)]
        plane = value.reshape(_plane(value.shape))
        number = -1
        if mask is not None:
            plane_mask = np.asarray(mask, dtype=np.bool_).reshape(plane.shape)
            number = self.mask(plane_mask)
        kept = plane.reshape(-1) if mask is None else plane[plane_mask]
        width, modelled = _WIDTH[kind]
        code, tail = encode_words(_rotate(kept, kind), width=width, modelled=modelled)
        entry = [name, shape, kind, number, len(code)]
        if codes is not None:
            used = np.ones(len(plane), dtype=np.bool_) if mask is None else plane_mask.any(axis=1)
            scales, _ = encode_words(codes[used].astype(np.uint32), width=8, modelled=8)
            self.sections.append(scales)
            entry.append(len(scales))
        self.sections += [code, tail]
        return entry


@dataclass
class Decoder:
    """Reads entries back from the sections; `numbers` is how much may still be unfolded."""

    payload: bytes
    numbers: int
    position: int = 0
    masks: list[NDArray[np.bool_]] = field(default_factory=list)

    def take(self, length: Any) -> bytes:
        """The next section."""
        if not isinstance(length, int) or not 0 <= length <= len(self.payload) - self.position:
            raise PackError(f"a section of {length!r:.40} bytes", f"at most {len(self.payload) - self.position}")
        self.position += length
        return self.payload[self.position - length : self.position]

    def claim(self, shape: Any) -> tuple[int, ...]:
        """A shape that the file is long enough to mean."""
        sizes = isinstance(shape, list) and len(shape) <= 16 and all(type(n) is int and n >= 0 for n in shape)
        count = 1
        for size in shape if sizes else [-1]:
            count *= size
        if not sizes or max(shape, default=0) >= 2**32 or count > self.numbers:
            raise PackError(f"a tensor of shape {shape!r:.60}", f"at most {self.numbers} numbers in such a file")
        self.numbers -= count
        return tuple(shape)

    def read_masks(self, entries: Any) -> None:
        """All masks, which the tensors then name by number."""
        for rows, columns, length in entries:
            shape = self.claim([rows, columns])
            self.masks.append(decode_mask(self.take(length), (shape[0], shape[1])))

    def tensors(self, entries: Any) -> Iterator[tuple[str, str, Array, NDArray[np.bool_] | None]]:
        """Name, kind, value and mask of every tensor."""
        for name, shape, kind, number, *lengths in entries:
            if not isinstance(name, str) or not isinstance(kind, str) or type(number) is not int:
                raise PackError(f"tensor {name!r:.60} of kind {kind!r:.60}", "words")
            size = self.claim(shape)
            if kind in _RAW:
                yield name, kind, self._raw(size, kind.removeprefix("raw "), self.take(lengths[0])), None
                continue
            if kind not in _WIDTH or not -1 <= number < len(self.masks):
                raise PackError(f"tensor {name!r:.60} of kind {kind!r:.60}, mask {number}", "a known kind and mask")
            mask = None if number < 0 else self.masks[number]
            if mask is not None and mask.shape != _plane(size):
                raise PackError(f"a mask of shape {mask.shape}", f"that of tensor {name!r:.60}, {_plane(size)}")
            yield name, kind, self._coded(size, kind, mask, lengths), None if mask is None else mask.reshape(size)

    def _raw(self, shape: tuple[int, ...], kind: str, packed: bytes) -> Array:
        length = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
        data = zlib.decompressobj().decompress(packed, length + 1)
        if len(data) != length:
            raise PackError(f"{len(data)} bytes of a tensor", f"{length}")
        return np.frombuffer(data, dtype=kind).reshape(shape).copy()

    def _coded(self, shape: tuple[int, ...], kind: str, mask: Array | None, lengths: list[int]) -> Array:
        rows, columns = _plane(shape)
        count = rows * columns if mask is None else int(mask.sum())
        width, modelled = _WIDTH[kind]
        steps = None
        if kind == "int8":
            used = np.ones(rows, dtype=np.bool_) if mask is None else mask.any(axis=1)
            codes = decode_words(self.take(lengths[1]), b"", count=int(used.sum()), width=8, modelled=8)
            steps = np.zeros(rows, dtype=np.float32)
            steps[used] = scale_of(codes)
        code = self.take(lengths[0])
        tail = self.take(-(-count * (width - modelled) // 8))
        kept = _unrotate(decode_words(code, tail, count=count, width=width, modelled=modelled), kind)
        plane = np.zeros((rows, columns), dtype=np.float32)
        if mask is None:
            plane[:] = kept.reshape(rows, columns)
        else:
            plane[mask] = kept
        if steps is not None:
            plane *= steps[:, None]
        return plane.reshape(shape)
