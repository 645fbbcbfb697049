"""Recurrent layers: one direction of one layer is one operation, a loop over as many steps as its input has.

Inputs are (time, samples, features), weights and biases those of torch, gates one after another along the rows. What
the inputs add to the gates is one product for all steps; the states' part is a product in every step, of the kept
weights alone where C is there and they are few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fewer.packs.program import Node
from fewer.packs.runtime.chain import Layer, compiled_chain, kernels, stage_of
from fewer.packs.runtime.ops import Array, sigmoid

__all__ = ["GATES", "RECURRENT", "sparse_recurrence"]

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
_KINDS = {("rnn", "tanh"): 0, ("rnn", "relu"): 1, ("gru", ""): 2, ("lstm", ""): 3}  # as C numbers them
Product = Callable[[Array], Array]  # (rows, features) to (rows, gates)


def _order(steps: int, *, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _gates(x: Array, into: Product) -> Array:
    return into(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:2], -1)


def _rnn(x: Array, into: Product, again: Product, h: Array, *, reverse: bool, activation: str) -> Array:
    """h = tanh(W x + b + V h + c), or the positive part of it."""
    given = _gates(x, into)
    states = np.empty((len(x), *h.shape), dtype=np.float32)
    for t in _order(len(x), reverse=reverse):
        total = given[t] + again(h)
        h = states[t] = np.tanh(total) if activation == "tanh" else np.maximum(total, np.float32(0))
    return states


def _gru(x: Array, into: Product, again: Product, h: Array, *, reverse: bool) -> Array:
    """h = (1 - z) n + z h with gates r, z and n = tanh(W x + b + r (V h + c))."""
    size, given = h.shape[-1], _gates(x, into)
    states = np.empty((len(x), *h.shape), dtype=np.float32)
    for t in _order(len(x), reverse=reverse):
        added = again(h)
        both = sigmoid(given[t][:, : 2 * size] + added[:, : 2 * size])
        n = np.tanh(given[t][:, 2 * size :] + both[:, :size] * added[:, 2 * size :])
        h = states[t] = n + both[:, size:] * (h - n)
    return states


def _lstm(x: Array, into: Product, again: Product, *rest: Array, reverse: bool, answer: str) -> Array:
    """c = f c + i g, h = o tanh(c), perhaps projected; gates i, f, g, o. The answer is every h, or the last c."""
    h, c, *projection = rest
    size, given = c.shape[-1], _gates(x, into)
    states = np.empty((len(x), *h.shape), dtype=np.float32)
    for t in _order(len(x), reverse=reverse):
        gates = given[t] + again(h)
        i, f, o = (sigmoid(gates[:, k * size : (k + 1) * size]) for k in (0, 1, 3))
        c = f * c + i * np.tanh(gates[:, 2 * size : 3 * size])
        h = o * np.tanh(c)
        h = states[t] = h @ projection[0].T if projection else h
    return states if answer == "states" else c


_LOOPS: dict[str, Callable[..., Array]] = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}


def _started(op: str, samples: int, state: int, rows: int, rest: tuple[Array, ...]) -> tuple[Array, ...]:
    """First states, zero where none are given, and what follows them; an LSTM has a second state, the cell."""
    given = len(rest) >= 2 if op == "lstm" else bool(rest)
    widths = (state, rows // GATES[op]) if op == "lstm" else (state,)
    return rest if given else (*(np.zeros((samples, n), np.float32) for n in widths), *rest)


def _operation(op: str) -> Callable[..., Array]:
    def call(x: Array, w: Array, v: Array, b: Array, c: Array, *rest: Array, **options: object) -> Array:
        states = _started(op, x.shape[1], v.shape[1], len(v), rest)
        return _LOOPS[op](x, lambda x: x @ w.T + b, lambda h: h @ v.T + c, *states, **options)

    return call


RECURRENT = {op: _operation(op) for op in GATES}


def _kept(weight: Array, bias: Array) -> Product | None:
    """A product of the kept weights in C."""
    stage = stage_of(Node("linear", ("x", "w", "b"), "y"), {"w": weight, "b": bias})
    return compiled_chain([stage], weight.shape[1:]) if isinstance(stage, Layer) else None


def sparse_recurrence(node: Node, tensors: Mapping[str, Array]) -> Callable[..., Array] | None:
    """The operation as a function of its input and what follows its biases, or None where dense serves better."""
    if any(name not in tensors for name in node.inputs[1:5]):
        return None
    w, v, b, c = (tensors[name] for name in node.inputs[1:5])
    into, again, compiled = _kept(w, b), _kept(v, c), kernels()
    if into is None or again is None or compiled is None:
        return None
    op, options = node.op, dict(node.attributes)
    kind = _KINDS[op, options.get("activation", "")]

    def call(x: Array, *rest: Array) -> Array:
        first, *others = _started(op, x.shape[1], v.shape[1], len(v), rest)
        rows = np.ascontiguousarray(x, dtype=np.float32)
        if len(others) > 1:  # a projection
            return _LOOPS[op](rows, into, lambda h: again(np.ascontiguousarray(h)), first, *others, **options)
        cell = np.array(others[0], dtype=np.float32) if others else None
        start = np.ascontiguousarray(first, dtype=np.float32)
        states: Array = compiled.recur(again, kind, _gates(rows, into), start, cell, options["reverse"])
        return cell if cell is not None and options["answer"] == "cell" else states

    return call
