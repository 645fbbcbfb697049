"""The shape that each operation of a program makes of the shapes it is given: nothing is computed, nothing allocated.

A rule is called as the operation in `ops` is, with shapes in place of arrays, and raises a ValueError that says what
would fit. `shapes_layers` holds the layers; `RULES` there joins both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fewer.packs.program import BINARY, REDUCE, UNARY

__all__ = ["SHAPES", "Rule", "Shape", "axis_of", "broadcast", "need"]

Shape = tuple[int, ...]
Rule = Callable[..., Shape]


def need(right: bool, expected: str) -> None:
    """Refuse what is not right."""
    if not right:
        raise ValueError(expected)


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    need(-rank <= axis < rank, f"an axis of {rank}")
    return axis % rank


def _axes_of(axes: Sequence[int], rank: int) -> list[int]:
    found = [axis_of(axis, rank) for axis in axes]
    need(len(set(found)) == len(found), "every axis once")
    return found


def broadcast(*shapes: Shape) -> Shape:
    """The shape of shapes that are stretched along axes of size 1."""
    rank = max(map(len, shapes))
    made = []
    for sizes in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes)):
        wide = {size for size in sizes if size != 1}
        need(len(wide) < 2, "shapes that broadcast")
        made.append(wide.pop() if wide else 1)
    return tuple(made)


def _same(x: Shape, **_: object) -> Shape:
    return x


def _binary(*shapes: Shape, left: float | None = None, right: float | None = None) -> Shape:
    if left is not None or right is not None:
        return shapes[0]
    need(len(shapes) == 2, "two values, or a value and a number")
    return broadcast(*shapes)


def _where(condition: Shape, *rest: Shape, left: float | None = None, right: float | None = None) -> Shape:
    values = (left is None) + (right is None)
    need(len(rest) >= values, "a value or a number on either side")
    return broadcast(condition, *rest[:values])


def _reduce(x: Shape, *, axes: Sequence[int], keep: bool, correction: float = 0) -> Shape:
    gone = _axes_of(axes, len(x))
    return tuple(1 if axis in gone else n for axis, n in enumerate(x) if keep or axis not in gone)


def _arg(x: Shape, *, axis: int | None = None, keep: bool) -> Shape:
    return _reduce(x, axes=range(len(x)) if axis is None else [axis], keep=keep)


def _along(x: Shape, *, axis: int, descending: bool = False) -> Shape:
    axis_of(axis, len(x))
    return x


def _reshape(x: Shape, *, shape: Shape) -> Shape:
    need(math.prod(x) == math.prod(shape), "as many numbers as before")
    return shape


def _expand(x: Shape, *, shape: Shape) -> Shape:
    need(broadcast(x, shape) == shape, "a shape that it broadcasts to")
    return shape


def _permute(x: Shape, *, axes: Sequence[int]) -> Shape:
    order = _axes_of(axes, len(x))
    need(len(order) == len(x), "every axis")
    return tuple(x[axis] for axis in order)


def _concat(*shapes: Shape, axis: int) -> Shape:
    place = axis_of(axis, len(shapes[0]))
    around = {(shape[:place], shape[place + 1 :]) for shape in shapes if len(shape) > place}
    need(len(around) == 1 and len({len(shape) for shape in shapes}) == 1, "the same sizes beside the axis")
    return (*shapes[0][:place], sum(shape[place] for shape in shapes), *shapes[0][place + 1 :])


def _slice(x: Shape, *, axis: int, start: int, step: int, stop: int | None = None) -> Shape:
    place = axis_of(axis, len(x))
    need(step != 0, "a step that is not 0")
    return (*x[:place], len(range(*slice(start, stop, step).indices(x[place]))), *x[place + 1 :])


def _put_slice(x: Shape, part: Shape, *, axis: int, start: int, step: int, stop: int | None = None) -> Shape:
    target = _slice(x, axis=axis, start=start, stop=stop, step=step)
    need(broadcast(part, target) == target, f"a part that fits {target}")
    return x


def _select(x: Shape, *, axis: int, index: int) -> Shape:
    place = axis_of(axis, len(x))
    need(-x[place] <= index < x[place], f"an index below {x[place]}")
    return x[:place] + x[place + 1 :]


def _pad(x: Shape, *, widths: Sequence[int], mode: str, value: float) -> Shape:
    need(len(widths) % 2 == 0 and len(widths) <= 2 * len(x), "two widths for each of the last axes")
    pairs = [(0, 0)] * (len(x) - len(widths) // 2) + list(zip(widths[::2], widths[1::2]))[::-1]
    cropped = [n + min(0, a) + min(0, b) for n, (a, b) in zip(x, pairs)]
    need(min(cropped, default=0) >= 0, "a crop that leaves something")
    # as in torch: what is repeated beside a value has to be there
    most = {"reflect": -1, "wrap": 0, "edge": math.inf}.get(mode, math.inf)
    repeats = all(max(a, b) <= (n + most if n else 0) for n, (a, b) in zip(cropped, pairs) if max(a, b) > 0)
    need(mode == "constant" or repeats, "padding no wider than what it repeats")
    return tuple(n + max(0, a) + max(0, b) for n, (a, b) in zip(cropped, pairs))


def _roll(x: Shape, *, shifts: Sequence[int], axes: Sequence[int]) -> Shape:
    need(len(shifts) == len(axes), "a shift for every axis")
    _axes_of(axes, len(x))
    return x


def _flip(x: Shape, *, axes: Sequence[int]) -> Shape:
    _axes_of(axes, len(x))
    return x


def _gather(x: Shape, index: Shape, *, axis: int) -> Shape:
    place = axis_of(axis, len(x))
    need(len(index) == len(x), "an index with as many axes")
    return broadcast(index, (*x[:place], 1, *x[place + 1 :]))


def _index_select(x: Shape, index: Shape, *, axis: int) -> Shape:
    place = axis_of(axis, len(x))
    return x[:place] + index + x[place + 1 :]


def _index(x: Shape, *indices: Shape, axes: Sequence[int]) -> Shape:
    places = _axes_of(axes, len(x))
    need(len(places) == len(indices), "an axis for every index")
    rest = tuple(n for axis, n in enumerate(x) if axis not in places)
    together = max(places) - min(places) < len(places)
    before = min(places) if together else 0  # numpy puts the axes of indices that lie apart first
    return rest[:before] + broadcast(*indices) + rest[before:]


def _scatter(x: Shape, index: Shape, source: Shape, *, axis: int, mode: str = "add") -> Shape:
    place = axis_of(axis, len(x))
    need(len(x) == len(index) == len(source), "an index and a source with as many axes")
    inside = all(i <= n for at, (i, n) in enumerate(zip(index, x)) if at != place)
    need(inside and all(i <= n for i, n in zip(index, source)), "an index within both values")
    return x


def _index_add(x: Shape, index: Shape, source: Shape, *, axis: int) -> Shape:
    place, at = axis_of(axis, len(x)), axis_of(axis, len(source))
    target = (*index, *x[:place], *x[place + 1 :])
    need(broadcast((source[at], *source[:at], *source[at + 1 :]), target) == target, "a part for every index")
    return x


def _index_put(x: Shape, values: Shape, *indices: Shape, axes: Sequence[int], add: bool) -> Shape:
    target = _index(x, *indices, axes=axes)
    need(broadcast(values, target) == target, f"values that fit {target}")
    return x


def _full(*, shape: Shape, value: float, dtype: str) -> Shape:
    return shape


def _arange(*, shape: Shape, start: float, step: float, dtype: str) -> Shape:
    need(len(shape) == 1, "one axis")
    return shape


_ALONE = (*UNARY.split(), "gelu", "leaky_relu", "elu", "clamp", "cast")

SHAPES: dict[str, Rule] = {
    **dict.fromkeys(_ALONE, _same), **dict.fromkeys(BINARY.split(), _binary), "where": _where,
    **dict.fromkeys((*REDUCE.split(), "var"), _reduce),
    **dict.fromkeys(("argmax", "argmin"), _arg),
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "sort", "argsort"), _along),
    "reshape": _reshape, "expand": _expand, "full": _full, "permute": _permute, "concat": _concat, "slice": _slice,
    "select": _select, "put_slice": _put_slice, "pad": _pad, "roll": _roll, "flip": _flip, "gather": _gather,
    "index_select": _index_select, "index": _index, "index_put": _index_put,
    "arange": _arange, "embedding": lambda table, index: _index_select(table, index, axis=0),
    **dict.fromkeys(("scatter", "scatter_add"), _scatter), "index_add": _index_add,
}  # fmt: skip
