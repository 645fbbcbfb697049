"""Sizes in C that depend on the length of a sequence: whole numbers at its longest, written as what they are of any.

What writes loops and places prints sizes and multiplies them; such a size prints itself as an expression of `time`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewer.core.errors import UserError
from fewer.packs.program import PackError, Program
from fewer.packs.runtime.ops import Array
from fewer.packs.shapes.demand import Allowance, shapes_of

__all__ = ["NAME", "Size", "TooFixed", "broadcast", "fitted", "part_of"]

NAME = "time"
_KNOWN = (1, 2, 3)  # lengths that tell a parabola
_WITH = (*range(4, 8), 11)  # others that it has to be right about


class TooFixed(UserError):
    """What cannot be written for any length."""


class Size(int):
    """A polynomial of the length, with its value at the longest one."""

    terms: tuple[int, ...]  # of the powers from 0 on
    longest: int

    def __new__(cls, terms: Sequence[int], longest: int) -> Size:
        found = super().__new__(cls, sum(factor * longest**power for power, factor in enumerate(terms)))
        found.terms, found.longest = tuple(terms), longest
        return found

    def _with(self, other: int) -> tuple[int, ...]:
        return other.terms if isinstance(other, Size) else (int(other),)

    def _made(self, terms: Sequence[int]) -> int:
        used = max((power for power, factor in enumerate(terms) if factor), default=0)
        return Size(terms[: used + 1], self.longest) if used else int(terms[0])

    def __mul__(self, other: int) -> int:
        theirs = self._with(other)
        terms = [0] * (len(self.terms) + len(theirs) - 1)
        for i, a in enumerate(self.terms):
            for j, b in enumerate(theirs):
                terms[i + j] += a * b
        return self._made(terms)

    def __add__(self, other: int) -> int:
        theirs = self._with(other)
        count = max(len(self.terms), len(theirs))
        wide = [[*terms, *[0] * (count - len(terms))] for terms in (self.terms, theirs)]
        return self._made([a + b for a, b in zip(*wide)])

    def __neg__(self) -> int:
        return self * -1

    def __sub__(self, other: int) -> int:
        return self + -other

    def __rsub__(self, other: int) -> int:
        return -self + other

    def __floordiv__(self, other: int) -> int:
        if isinstance(other, Size) or any(factor % other for factor in self.terms):
            raise TooFixed(f"a share {other} of a length that varies", "a fixed length, for an export to C")
        return self._made([factor // other for factor in self.terms])

    __rmul__, __radd__ = __mul__, __add__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and self.terms == self._with(other)

    def __hash__(self) -> int:
        return hash(self.terms)

    def __str__(self) -> str:
        parts = [
            " * ".join([*([str(factor)] if factor != 1 or not power else []), *[NAME] * power])
            for power, factor in enumerate(self.terms)
            if factor
        ]
        return f"({' + '.join(parts)})" if len(parts) > 1 or "*" in parts[0] else parts[0]

    def __format__(self, _: str) -> str:
        return str(self)

    __repr__ = __str__


def fitted(program: Program, tensors: Mapping[str, Array], longest: int) -> dict[str, tuple[int, ...]] | None:
    """The shape of every value for one sample, as sizes; None where one is no polynomial of the length."""
    sizes = {name: value.shape for name, value in tensors.items()}

    def at(length: int) -> dict[str, tuple[int, ...]]:
        return shapes_of(program, sizes, 1, Allowance.unlimited(), length)

    lengths = [n for n in (*_KNOWN, *_WITH, longest) if program.time is None or n <= (program.time.most or n)]
    if len(lengths) <= len(_KNOWN):
        return None
    try:
        known = {length: at(length) for length in lengths}
    except PackError:
        return None
    found: dict[str, tuple[int, ...]] = {}
    for name in known[lengths[0]]:
        columns = list(zip(*(known[length][name] for length in lengths)))
        made = [_parabola(lengths, column, longest) for column in columns]
        if None in made:
            return None
        found[name] = tuple(size for size in made if size is not None)
    return found


def _parabola(lengths: Sequence[int], sizes: Sequence[int], longest: int) -> int | None:
    """The polynomial through the first three, if it goes through all."""
    a, b, c = sizes[:3]
    twice = c - 2 * b + a
    if twice % 2:
        return None
    square, line = twice // 2, b - a - 3 * (twice // 2)
    terms = (a - square - line, line, square)
    if any(sum(f * n**p for p, f in enumerate(terms)) != size for n, size in zip(lengths, sizes)):
        return None
    return Size(terms, longest)._made(terms)


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that several broadcast to."""
    rank = max(map(len, shapes))
    wide = [(*[1] * (rank - len(shape)), *shape) for shape in shapes]
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in zip(*wide))


def part_of(size: int, start: int, stop: int | None, step: int) -> tuple[int, int]:
    """The first place and the number of places of a slice of an axis, one of which varies with the length."""
    if step == -1 and start == -1 and stop is None:
        return size - 1, size
    begin = size + start if start < 0 else start
    end = size if stop is None else size + stop if stop < 0 else stop
    fixed = not isinstance(stop, Size) and stop is not None and stop > 0
    if step != 1 or (fixed and end - begin != 1):
        raise TooFixed("a part of fixed length of sequences of any", "a fixed length, for an export to C")
    return begin, end - begin
