"""Values in C: where the numbers of a value lie, and loops that read and write them.

Permutations, slices, expansions and the like move nothing: they are other strides over the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fewer.packs.export.c_sizes import Size, part_of

__all__ = ["View", "assign", "loops", "number"]

Shape = tuple[int, ...]


def number(value: float) -> str:
    """A float that reads back to the same bits."""
    if isinstance(value, Size):
        return f"(float){value}"
    if not np.isfinite(value):
        return {np.inf: "INFINITY", -np.inf: "-INFINITY"}.get(value, "NAN")
    with np.errstate(over="ignore"):
        text = f"{np.float32(value):.9g}"
    if "inf" in text:
        return "-INFINITY" if value < 0 else "INFINITY"
    return (text if any(mark in text for mark in ".e") else text + ".0") + "f"


@dataclass(frozen=True)
class View:
    """Numbers of an array of C by shape, strides and offset."""

    place: str
    shape: Shape
    strides: Shape
    offset: int = 0

    @classmethod
    def solid(cls, place: str, shape: Sequence[int]) -> View:
        """All numbers one after another."""
        return cls(place, tuple(shape), tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape))))

    @property
    def is_solid(self) -> bool:
        """Whether the numbers lie one after another."""
        return all(a == b for n, a, b in zip(self.shape, self.strides, self._own()) if n != 1)

    def _own(self) -> Shape:
        return View.solid("", self.shape).strides

    @property
    def pointer(self) -> str:
        """Where the first number lies."""
        return f"({self.place} + {self.offset})" if self.offset else self.place

    def at(self, letters: Sequence[str]) -> str:
        """The number at the loop variables of its axes."""
        terms = [f"{i} * {s}" if s != 1 else i for i, s, n in zip(letters, self.strides, self.shape) if s and n != 1]
        return f"{self.place}[{' + '.join([*terms, *([str(self.offset)] if self.offset or not terms else [])])}]"

    def permuted(self, axes: Sequence[int]) -> View:
        """Axes in another order."""
        return replace(self, shape=tuple(self.shape[a] for a in axes), strides=tuple(self.strides[a] for a in axes))

    def part(self, axis: int, start: int, stop: int | None, step: int) -> View:
        """Every step-th place of an axis."""
        axis %= len(self.shape)
        if any(isinstance(each, Size) for each in (self.shape[axis], start, stop)):
            begin, count = part_of(self.shape[axis], start, stop, step)
            cut = [list(self.shape), list(self.strides)]
            cut[0][axis], cut[1][axis] = count, self.strides[axis] * step
            return View(self.place, tuple(cut[0]), tuple(cut[1]), self.offset + begin * self.strides[axis])
        places = range(*slice(start, stop, step).indices(self.shape[axis]))
        shape, strides = list(self.shape), list(self.strides)
        shape[axis], strides[axis] = len(places), strides[axis] * places.step
        first = places.start * self.strides[axis] if len(places) else 0
        return View(self.place, tuple(shape), tuple(strides), self.offset + first)

    def without(self, axis: int) -> View:
        """The first place of an axis, which is gone."""
        axis %= len(self.shape)
        cut = [part[:axis] + part[axis + 1 :] for part in (self.shape, self.strides)]
        return replace(self, shape=cut[0], strides=cut[1])

    def widened(self, shape: Sequence[int]) -> View:
        """Broadcast to a shape."""
        own = (0,) * (len(shape) - len(self.shape)) + tuple(
            0 if n == 1 else s for n, s in zip(self.shape, self.strides)
        )
        return replace(self, shape=tuple(shape), strides=own)


def loops(shape: Sequence[int], letters: Sequence[str]) -> str:
    """The heads of nested loops; axes of size 1 have none."""
    return " ".join(f"for (int {i} = 0; {i} < {n}; {i}++)" for i, n in zip(letters, shape) if n != 1)


def _collapsed(views: list[View]) -> list[View]:
    """The same numbers with as few axes as all views allow; all have one shape."""
    shape = views[0].shape
    sizes: list[int] = []
    strides: list[list[int]] = [[] for _ in views]
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        joins = bool(sizes) and all(own[-1] == view.strides[axis] * n for own, view in zip(strides, views))
        if joins:
            sizes[-1] *= n
        else:
            sizes.append(n)
        for own, view in zip(strides, views):
            if joins:
                own[-1] = view.strides[axis]
            else:
                own.append(view.strides[axis])
    return [replace(view, shape=tuple(sizes), strides=tuple(own)) for view, own in zip(views, strides)]


def assign(target: View, expression: str, *views: View, sign: str = "=") -> str:
    """For every place of the target, what the expression makes of the views' numbers; {0}, {1}, ... stand for them."""
    if 0 in target.shape:
        return ";"
    first, *rest = _collapsed([target, *(view.widened(target.shape) for view in views)])
    letters = [f"i{axis}" for axis in range(len(first.shape))]
    line = f"{first.at(letters)} {sign} {expression.format(*(view.at(letters) for view in rest))};"
    return f"{loops(first.shape, letters)} {line}".strip()
