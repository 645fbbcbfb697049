"""Lossless codes for masks and values: an adaptive binary range coder in C, and the same in Python.

A mask is coded row by row. What the row so far, the column so far, the whole mask so far and the neighbouring
cells say about the next cell is mixed in log-odds by weights that learn as they go; on masks of SNIP this takes
0.19 bit per weight where their density alone would take 0.29. Of a value only the leading bits (exponent and the
head of the mantissa) have structure: they are coded, the rest is stored as it is.

All arithmetic is on integers, so files travel between machines. `compiled` says whether the C coder serves.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numpy.typing import NDArray

__all__ = ["compiled", "decode_mask", "decode_words", "encode_mask", "encode_words"]

_codec: ModuleType | None
try:
    from fewer.packs import _codec  # type: ignore[attr-defined, no-redef]
except ImportError:  # built without a compiler
    _codec = None

LIMIT = 2815  # largest log-odds, in 1/256 nat
BUCKETS = 24
CHUNK = 1 << 14  # words whose loose bits are packed at once; a multiple of 8, so that chunks end on bytes
START_WEIGHTS = (49152, 49152, -49152, 16384, 0)  # row + column - whole, as independent evidence would add up

_probability = np.maximum(np.arange(65536), 1) / 65536
STRETCH = np.clip(np.round(256 * np.log(_probability / (1 - _probability))), -LIMIT, LIMIT).astype(np.int16)
_squash = np.round(65536 / (1 + np.exp(-np.arange(-LIMIT, LIMIT + 1) / 256)))
SQUASH = np.clip(_squash, 1, 65535).astype(np.uint16)


def compiled() -> bool:
    """Whether the C coder was built with the package."""
    return _codec is not None


class Coder:
    """The range coder: bits in, bytes out, or back when it is given data; zeros follow the end of the data."""

    def __init__(self, data: bytes | None = None) -> None:
        self.low, self.high = 0, 0xFFFFFFFF
        self.out = bytearray()
        self.data = data
        self.position = 4
        self.code = int.from_bytes((data or b"")[:4].ljust(4, b"\0"), "big")

    def bit(self, bit: int, probability: int) -> int:
        """Code one bit whose probability of being 1 is `probability` / 65536."""
        middle = self.low + ((self.high - self.low) * probability >> 16)
        if self.data is not None:
            bit = int(self.code <= middle)
        if bit:
            self.high = middle
        else:
            self.low = middle + 1
        while (self.low ^ self.high) & 0xFF000000 == 0:
            if self.data is None:
                self.out.append(self.high >> 24)
            else:
                byte = self.data[self.position] if self.position < len(self.data) else 0
                self.code = (self.code << 8 | byte) & 0xFFFFFFFF
                self.position += 1
            self.low = self.low << 8 & 0xFFFFFFFF
            self.high = (self.high << 8 | 255) & 0xFFFFFFFF
        return bit

    def finish(self) -> bytes:
        """The shortest ending, since the reader sees zeros after the last byte."""
        if self.low:
            self.out.append((self.low >> 24) + 1)
        return bytes(self.out).rstrip(b"\0")


def _learn(state: list[int], bit: int, slowest: int) -> None:
    probability, count = state
    # C division rounds towards zero; Python's rounds down
    step = abs((bit << 22) - probability) * 2 // (2 * count + 3)
    state[0] = probability + (step if bit << 22 > probability else -step)
    state[1] = min(count + 1, slowest)


def _chance(state: list[int]) -> int:
    return min(max(state[0] >> 6, 1), 65535)


def _share(ones: int, seen: int, strength: int, expected: int) -> int:
    return min(max(((ones << 16) + strength * expected) // (seen + strength), 1), 65535)


def _bucket(odds: int) -> int:
    return min(max((odds + 2304) >> 7, 0), BUCKETS - 1)


def _code_mask(coder: Coder, cells: bytearray, rows: int, columns: int) -> None:
    stretch, squash = STRETCH.tolist(), SQUASH.tolist()
    weights = [list(START_WEIGHTS) for _ in range(4)]
    table = [[1 << 18, 0] for _ in range(BUCKETS * BUCKETS * 4)]
    ones = [0] * columns
    total = 0
    for row in range(rows):
        # what a column says is worth more the more rows have been seen
        weight = weights[0 if row == 0 else 1 if row < 4 else 2 if row < 32 else 3]
        row_ones = before = 0
        whole = _share(total, row * columns, 32, 3277)
        for column in range(columns):
            place = row * columns + column
            along = stretch[_share(row_ones, column, 6, whole)]
            above = stretch[_share(ones[column], row, 6, whole)]
            over = cells[place - columns] if row else 0
            context = table[(_bucket(along) * BUCKETS + _bucket(above)) * 4 + before * 2 + over]
            odds = (along, above, stretch[whole], stretch[_chance(context)], 256)
            mixed = sum(w * o for w, o in zip(weight, odds)) >> 16
            probability = squash[min(max(mixed, -LIMIT), LIMIT) + LIMIT]
            bit = coder.bit(cells[place], probability)
            cells[place] = before = bit
            error = (bit << 16) - probability
            for i, value in enumerate(odds):
                weight[i] = min(max(weight[i] + (value * error * 3 >> 18), -524288), 524288)
            _learn(context, bit, 250)
            ones[column] += bit
            row_ones += bit
        total += row_ones


def _code_words(coder: Coder, words: list[int], width: int) -> None:
    tree = [[1 << 21, 0] for _ in range(1 << width)]
    for i, word in enumerate(words):
        node = 1
        for place in range(width - 1, -1, -1):
            bit = coder.bit(word >> place & 1, _chance(tree[node]))
            _learn(tree[node], bit, 1000)
            node = node << 1 | bit
        words[i] = node - (1 << width)


def encode_mask(mask: NDArray[np.bool_]) -> bytes:
    """The code of a two-dimensional mask; its shape is not part of it."""
    rows, columns = mask.shape
    cells = np.ascontiguousarray(mask, dtype=np.uint8).tobytes()
    if _codec is not None:
        return bytes(_codec.mask(cells, rows, columns, STRETCH, SQUASH, True))
    coder = Coder()
    _code_mask(coder, bytearray(cells), rows, columns)
    return coder.finish()


def decode_mask(code: bytes, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """The mask of that shape; any bytes decode to some mask, so the caller checks a checksum first."""
    rows, columns = shape
    if _codec is not None:
        cells = _codec.mask(code, rows, columns, STRETCH, SQUASH, False)
    else:
        cells = bytearray(rows * columns)
        _code_mask(Coder(code), cells, rows, columns)
    return np.frombuffer(cells, dtype=np.uint8).reshape(shape).astype(np.bool_)


def encode_words(words: NDArray[np.uint32], *, width: int, modelled: int) -> tuple[bytes, bytes]:
    """Codes of `width`-bit words: the `modelled` leading bits coded, and the others packed as they are."""
    heads = (words >> np.uint32(width - modelled)).astype(np.uint32)
    if _codec is not None:
        code = bytes(_codec.words(heads.tobytes(), len(heads), modelled, True))
    else:
        coder = Coder()
        _code_words(coder, heads.tolist(), modelled)
        code = coder.finish()
    places = np.arange(width - modelled - 1, -1, -1, dtype=np.uint32)
    chunks = (words[start : start + CHUNK, None] >> places & 1 for start in range(0, len(words), CHUNK))
    return code, b"".join(np.packbits(chunk.astype(np.uint8)).tobytes() for chunk in chunks)


def decode_words(code: bytes, tail: bytes, *, count: int, width: int, modelled: int) -> NDArray[np.uint32]:
    """The words; `tail` must hold exactly the bits that were not modelled."""
    if _codec is not None:
        heads = np.frombuffer(_codec.words(code, count, modelled, False), dtype=np.uint32)
    else:
        values = [0] * count
        _code_words(Coder(code), values, modelled)
        heads = np.array(values, dtype=np.uint32)
    loose, words = width - modelled, heads.copy()
    packed = np.frombuffer(tail, dtype=np.uint8)
    for start in range(0, count, CHUNK):
        part = words[start : start + CHUNK]
        bits = np.unpackbits(packed[start * loose // 8 :], count=len(part) * loose).reshape(len(part), loose)
        for column in range(loose):
            part[:] = part << np.uint32(1) | bits[:, column]
    return words
