"""Operations in C that are no layers: arithmetic, views, reductions, products, indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.export.c_sizes import broadcast
from fewer.packs.export.c_views import View, assign, loops, number
from fewer.packs.program import Node
from fewer.packs.runtime.ops import Array

__all__ = ["OPERATIONS", "Operation", "Writing", "products", "scores_softmax", "taken"]


class Writing(Protocol):
    """What an operation needs of the writer."""

    tensors: dict[str, Array]
    shapes: dict[str, tuple[int, ...]]
    body: list[str]

    def constant(self, kind: str, values: Array) -> str:
        """The name of a constant array."""

    def view(self, name: str) -> View:
        """Where a value lies."""

    def solid(self, name: str) -> str:
        """A pointer to a value whose numbers lie one after another."""

    def booleans(self, name: str) -> bool:
        """Whether a value is of booleans."""

    def room(self, shape: Sequence[int]) -> View:
        """A new buffer."""


Operation = Callable[[Writing, Node], View]

_TRUTH = "(({}) ? 1.0f : 0.0f)"
_UNARY = {
    "relu": "({0} < 0.0f ? 0.0f : {0})", "tanh": "tanhf({0})", "sigmoid": "1.0f / (1.0f + expf(-{0}))",
    "rsqrt": "1.0f / sqrtf({0})", "neg": "-{0}", "abs": "fabsf({0})", "reciprocal": "1.0f / {0}",
    "round": "rintf({0})", "sign": "(float)(({0} > 0.0f) - ({0} < 0.0f))", "logical_not": "({0} == 0.0f ? 1.0f : 0.0f)",
    **{name: f"{name}f({{0}})" for name in (
        "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh",
        "acosh", "atanh", "erf", "floor", "ceil", "trunc")},
}  # fmt: skip
_BINARY = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "maximum": "fmaxf({}, {})",
    "minimum": "fminf({}, {})", "pow": "powf({}, {})", "atan2": "atan2f({}, {})", "fmod": "fmodf({}, {})",
    "remainder": "{0} - floorf({0} / {1}) * {1}", "floor_divide": "floorf({} / {})",
    **{name: _TRUTH.format(f"{{}} {sign} {{}}") for name, sign in (
        ("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))},
    "logical_and": _TRUTH.format("{} != 0.0f && {} != 0.0f"), "logical_or": _TRUTH.format("{} != 0.0f || {} != 0.0f"),
    "logical_xor": _TRUTH.format("({} != 0.0f) != ({} != 0.0f)"),
}  # fmt: skip


def _made(w: Writing, n: Node, expression: str, *names: str) -> View:
    target = w.room(w.shapes[n.output])
    w.body.append(assign(target, expression, *(w.view(name) for name in names)))
    return target


def _unary(w: Writing, n: Node) -> View:
    return _made(w, n, _UNARY[n.op], n.inputs[0])


def _binary(w: Writing, n: Node) -> View:
    left, right = n.attributes.get("left"), n.attributes.get("right")
    if left is not None:
        return _made(w, n, _BINARY[n.op].format(number(left), "{0}"), n.inputs[0])
    if right is not None:
        return _made(w, n, _BINARY[n.op].format("{0}", number(right)), n.inputs[0])
    return _made(w, n, _BINARY[n.op].format("{0}", "{1}"), *n.inputs[:2])


def _where(w: Writing, n: Node) -> View:
    sides, names = [], [n.inputs[0]]
    rest = list(n.inputs[1:])
    for side in ("left", "right"):
        if n.attributes.get(side) is not None:
            sides.append(number(n.attributes[side]))
        else:
            sides.append(f"{{{len(names)}}}")
            names.append(rest.pop(0))
    return _made(w, n, f"{{0}} != 0.0f ? {sides[0]} : {sides[1]}", *names)


def _cast(w: Writing, n: Node) -> View:
    kind = n.attributes["dtype"]
    if kind.startswith("float"):
        return w.view(n.inputs[0])
    return _made(w, n, "({0} != 0.0f ? 1.0f : 0.0f)" if kind == "bool" else "truncf({0})", n.inputs[0])


def _reshape(w: Writing, n: Node) -> View:
    shape, view = w.shapes[n.output], w.view(n.inputs[0])
    if not view.is_solid:
        view = View.solid(w.solid(n.inputs[0]), view.shape)
    return replace(View.solid(view.place, shape), offset=view.offset)


def _flip(w: Writing, n: Node) -> View:
    view = w.view(n.inputs[0])
    for axis in n.attributes["axes"]:
        view = view.part(axis, -1, None, -1)
    return view


def _slice(w: Writing, n: Node) -> View:
    a = n.attributes
    return w.view(n.inputs[0]).part(a["axis"], a["start"], a.get("stop"), a["step"])


def _select(w: Writing, n: Node) -> View:
    axis, index = n.attributes["axis"], n.attributes["index"]
    return w.view(n.inputs[0]).part(axis, index, index + 1 or None, 1).without(axis)


def _concat(w: Writing, n: Node) -> View:
    target, axis, start = w.room(w.shapes[n.output]), n.attributes["axis"], 0
    for name in n.inputs:
        size = w.shapes[name][axis]
        w.body.append(assign(target.part(axis, start, start + size, 1), "{0}", w.view(name)))
        start += size
    return target


def _put_slice(w: Writing, n: Node) -> View:
    a, target = n.attributes, _made(w, n, "{0}", n.inputs[0])
    w.body.append(assign(target.part(a["axis"], a["start"], a.get("stop"), a["step"]), "{0}", w.view(n.inputs[1])))
    return target


def taken(w: Writing, view: View, axis: int, places: Array) -> View:
    """Places of an axis that are known now."""
    axis %= len(view.shape)
    shape = (*view.shape[:axis], *places.shape, *view.shape[axis + 1 :])
    target = w.room(shape)
    if 0 in shape:
        return target
    table = w.constant("int", places % view.shape[axis])
    flat = View.solid(target.place, (*view.shape[:axis], places.size, *view.shape[axis + 1 :]))
    letters = [f"i{at}" for at in range(len(flat.shape))]
    index = f"{table}[{letters[axis] if places.size > 1 else 0}]"
    own = View(view.place, (*view.shape[:axis], 2, *view.shape[axis + 1 :]), view.strides, view.offset)  # 2: named
    source = own.at([index if at == axis else letter for at, letter in enumerate(letters)])
    w.body.append(f"{loops(flat.shape, letters)} {flat.at(letters)} = {source};")
    return target


def _roll(w: Writing, n: Node) -> View:
    view = w.view(n.inputs[0])
    for shift, axis in zip(n.attributes["shifts"], n.attributes["axes"]):
        view = taken(w, view, axis, (np.arange(view.shape[axis]) - shift) % max(1, view.shape[axis]))
    return view


def _pad(w: Writing, n: Node) -> View:
    view, a = w.view(n.inputs[0]), n.attributes
    rank = len(view.shape)
    pairs = [(rank - 1 - at, a["widths"][2 * at], a["widths"][2 * at + 1]) for at in range(len(a["widths"]) // 2)]
    if a["mode"] != "constant":
        for axis, before, after in pairs:
            places = np.arange(view.shape[axis])[max(0, -before) : view.shape[axis] - max(0, -after)]
            view = taken(w, view, axis, np.pad(places, (max(0, before), max(0, after)), mode=a["mode"]))
        return view
    target = w.room(w.shapes[n.output])
    w.body.append(assign(target, number(a["value"])))
    inside = target
    for axis, before, after in pairs:
        view = view.part(axis, max(0, -before), view.shape[axis] - max(0, -after), 1)
        inside = inside.part(axis, max(0, before), inside.shape[axis] - max(0, after), 1)
    w.body.append(assign(inside, "{0}", view))
    return target


_REDUCE = {
    "sum": ("0.0f", "all + {}"), "mean": ("0.0f", "all + {}"), "amax": ("-INFINITY", "fmaxf(all, {})"),
    "amin": ("INFINITY", "fminf(all, {})"), "prod": ("1.0f", "all * {}"),
    "any": ("0.0f", "({} != 0.0f ? 1.0f : all)"), "all": ("1.0f", "({} == 0.0f ? 0.0f : all)"),
}  # fmt: skip


def _ordered(w: Writing, n: Node, axes: Sequence[int]) -> tuple[View, View, list[str]]:
    """A value with the axes to go last, the answer with the others, and the letters of all."""
    view = w.view(n.inputs[0])
    gone = sorted(axis % len(view.shape) for axis in axes)
    kept = [axis for axis in range(len(view.shape)) if axis not in gone]
    target = View.solid(w.room(w.shapes[n.output]).place, [view.shape[axis] for axis in kept])
    return view.permuted([*kept, *gone]), target, [f"i{at}" for at in range(len(view.shape))]


def _reduce(w: Writing, n: Node) -> View:
    view, target, letters = _ordered(w, n, n.attributes["axes"])
    rank = len(target.shape)
    outer, inner = loops(target.shape, letters), loops(view.shape[rank:], letters[rank:])
    first, step = _REDUCE["sum" if n.op == "var" else n.op]
    count = math.prod(view.shape[rank:])
    value, at = view.at(letters), target.at(letters)
    lines = f"float all = {first}; {inner} all = {step.format(value)};"
    if n.op == "mean":
        lines += f" all /= {number(count)};"
    if n.op == "var":
        square = f"({value} - mean) * ({value} - mean)"
        lines += f" const float mean = all / {number(count)}; all = 0.0f; {inner} all += {square};"
        lines += f" all /= {number(max(count - int(n.attributes['correction']), 0))};"
    w.body.append(f"{outer} {{ {lines} {at} = all; }}")
    return View.solid(target.place, w.shapes[n.output])


def _arg(w: Writing, n: Node) -> View:
    view, target, letters = _ordered(w, n, [n.attributes["axis"]])
    value, at, last = view.at(letters), target.at(letters), letters[-1]
    sign = ">" if n.op == "argmax" else "<"
    size = view.shape[-1]
    step = f"for (int {last} = 0; {last} < {size}; {last}++)"
    take = f"if ({last} == 0 || {value} {sign} top) {{ top = {value}; {at} = (float){last}; }}"
    w.body.append(f"{loops(target.shape, letters)} {{ float top = 0.0f; {step} {take} }}")
    return View.solid(target.place, w.shapes[n.output])


def _cumsum(w: Writing, n: Node) -> View:
    target = w.room(w.shapes[n.output])
    axis = n.attributes["axis"] % len(target.shape)
    order = [*(at for at in range(len(target.shape)) if at != axis), axis]
    view, goal = w.view(n.inputs[0]).permuted(order), target.permuted(order)
    letters = [f"i{at}" for at in range(len(order))]
    inner = f"{loops(goal.shape[-1:], letters[-1:])} {goal.at(letters)} = all += {view.at(letters)};"
    w.body.append(f"{loops(goal.shape[:-1], letters)} {{ float all = 0.0f; {inner} }}")
    return target


def _sort(w: Writing, n: Node) -> View:
    """By insertion, which leaves equals in their order."""
    values, places = w.room(w.shapes[n.output]), w.room(w.shapes[n.output])
    axis, rank = n.attributes["axis"] % len(values.shape), len(values.shape)
    order = [*(at for at in range(rank) if at != axis), axis]
    x, v, p = (view.permuted(order) for view in (w.view(n.inputs[0]), values, places))
    letters = [f"i{at}" for at in range(rank)]
    now, before = ([view.at([*letters[:-1], k]) for view in (v, p)] for k in ("k", "(k - 1)"))
    sign = ">" if n.attributes["descending"] else "<"
    move = f"for (; k > 0 && x {sign} {before[0]}; k--) {{ {now[0]} = {before[0]}; {now[1]} = {before[1]}; }}"
    inner = f"{{ const float x = {x.at([*letters[:-1], 'j'])}; int k = j; {move} {now[0]} = x; {now[1]} = (float)j; }}"
    w.body.append(f"{loops(x.shape[:-1], letters)} for (int j = 0; j < {x.shape[-1]}; j++) {inner}")
    return values if n.op == "sort" else places


def scores_softmax(w: Writing, view: View, target: View, axis: int, *, logarithm: bool = False) -> None:
    """Shares, or their logarithms, along an axis; a row without any score is NaN, as in torch."""
    order = [*(at for at in range(len(view.shape)) if at != axis % len(view.shape)), axis % len(view.shape)]
    view, target = view.permuted(order), target.permuted(order)
    letters = [f"i{at}" for at in range(len(order))]
    inner, x, y = loops(view.shape[-1:], letters[-1:]), view.at(letters), target.at(letters)
    last = f"{y} = {x} - top - logf(sum);" if logarithm else f"{y} /= sum;"
    first = f"{inner} {{ const float e = expf({x} - top); sum += e; {'' if logarithm else f'{y} = e;'} }}"
    lines = f"float top = -INFINITY, sum = 0.0f; {inner} if ({x} > top) top = {x}; {first} {inner} {last}"
    w.body.append(f"{loops(view.shape[:-1], letters)} {{ {lines} }}")


def _softmax(w: Writing, n: Node) -> View:
    target = w.room(w.shapes[n.output])
    scores_softmax(w, w.view(n.inputs[0]), target, n.attributes["axis"], logarithm=n.op == "log_softmax")
    return target


def products(w: Writing, a: View, b: View, scale: float = 1.0) -> View:
    """Products over the last two axes."""
    front = broadcast(a.shape[:-2], b.shape[:-2])
    target = w.room((*front, a.shape[-2], b.shape[-1]))
    a, b = a.widened((*front, *a.shape[-2:])), b.widened((*front, *b.shape[-2:]))
    letters = [f"i{at}" for at in range(len(front) + 2)]
    left, right = a.at([*letters[:-1], "k"]), b.at([*letters[:-2], "k", letters[-1]])
    inner = f"float all = 0.0f; {loops(a.shape[-1:], 'k')} all += {left} * {right};"
    last = f"{target.at(letters)} = all{'' if scale == 1 else ' * ' + number(scale)};"
    w.body.append(f"{loops(target.shape, letters)} {{ {inner} {last} }}")
    return target


def _matmul(w: Writing, n: Node) -> View:
    a, b = (w.view(name) for name in n.inputs)
    if len(a.shape) == 1:
        a = View(a.place, (1, *a.shape), (0, *a.strides), a.offset)
    if len(b.shape) == 1:
        b = View(b.place, (*b.shape, 1), (*b.strides, 0), b.offset)
    return View.solid(products(w, a, b).place, w.shapes[n.output])


def _refuse_all(w: Writing, n: Node) -> View:
    if n.attributes.get("axis") is None:
        raise UserError(f"{n.op} over all axes", "one axis, for an export to C")
    return _arg(w, n)


def _full(w: Writing, n: Node) -> View:
    return _made(w, n, number(n.attributes["value"]))


OPERATIONS: dict[str, Operation] = {
    **dict.fromkeys(_UNARY, _unary), **dict.fromkeys(_BINARY, _binary), "where": _where, "cast": _cast,
    "reshape": _reshape, "flip": _flip, "slice": _slice, "select": _select, "concat": _concat, "put_slice": _put_slice,
    "permute": lambda w, n: w.view(n.inputs[0]).permuted(n.attributes["axes"]),
    "expand": lambda w, n: w.view(n.inputs[0]).widened(w.shapes[n.output]), "roll": _roll, "pad": _pad, "full": _full,
    **dict.fromkeys((*_REDUCE, "var"), _reduce), **dict.fromkeys(("argmax", "argmin"), _refuse_all),
    "cumsum": _cumsum, **dict.fromkeys(("sort", "argsort"), _sort),
    **dict.fromkeys(("softmax", "log_softmax"), _softmax), "matmul": _matmul,
}  # fmt: skip
