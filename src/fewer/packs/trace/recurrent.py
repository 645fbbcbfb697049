"""Recurrent layers of torch: one operation for each layer and direction, a loop whatever the length."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from fewer.core.errors import UserError
from fewer.packs.trace.record import Constant, Converter, Recorder, Value

__all__ = ["RECURRENT"]


def _first_states(recorder: Recorder, given: Any) -> list[Value | None]:
    """The first state of each layer and direction; None where it is zero, which the operation takes for granted."""
    if isinstance(given, Constant):
        return [Constant(part) if part.any() else None for part in given.value]
    made = next((node for node in recorder.nodes if node.output == given), None)
    zero = made is not None and made.op == "full" and made.attributes["value"] == 0
    count = int(recorder.like(given).shape[0])
    return [None if zero else recorder.emit("select", given, axis=0, index=place) for place in range(count)]


def _starts(recorder: Recorder, a: SimpleNamespace) -> list[list[Value]]:
    """What each layer and direction starts with: nothing, or a state; of an LSTM two, one of which may be zero."""
    given = list(a.hx) if a.name == "lstm" else [a.hx]
    shapes = [recorder.dimensions(recorder.like(state).shape)[1:] for state in given]
    starts = []
    for states in zip(*(_first_states(recorder, state) for state in given)):
        needed = any(state is not None for state in states)
        starts.append([
            recorder.emit("full", shape=shape, value=0, dtype="float32") if state is None else state
            for state, shape in zip(states, shapes)
            if needed
        ])  # fmt: skip
    return starts


def _weights(a: SimpleNamespace, count: int) -> list[tuple[list[Any], list[Any]]]:
    """Of each layer and direction: both matrices and biases, and the projection of an LSTM that has one."""
    each = len(a.params) // count
    parts = []
    for place in range(count):
        own = list(a.params[place * each : (place + 1) * each])
        projection = [own.pop()] if each in (3, 5) else []
        if not a.has_biases:
            own += [Constant(torch.zeros(own[0].value.shape[0]))] * 2
        parts.append((own, projection))
    return parts


def _recurrent(recorder: Recorder, a: SimpleNamespace, shown: Any) -> tuple[str, ...]:
    if hasattr(a, "batch_sizes"):
        raise UserError(
            f"{a.name} of a packed sequence", "one length for all", "pad the sequences, and mask the padding"
        )
    if recorder.like(a.input).ndim != 3:
        raise UserError(f"{a.name} of one sequence without samples", "samples, time and features")
    x = recorder.emit("permute", a.input, axes=[1, 0, 2]) if a.batch_first else a.input
    starts, ways = _starts(recorder, a), 2 if a.bidirectional else 1
    weights = _weights(a, len(starts))
    ends: list[list[str]] = [[] for _ in shown[1:]]
    for layer in range(a.num_layers):
        made = []
        for way in range(ways):
            own, projection = weights[layer * ways + way]
            inputs = [x, *own, *starts[layer * ways + way], *projection]
            states, *cell = _one(recorder, a.name, inputs, reverse=way == 1)
            made.append(states)
            last = recorder.emit("select", states, axis=0, index=-1 if way == 0 else 0)
            for end, state in zip(ends, [last, *cell]):
                end.append(state)
        x = made[0] if ways == 1 else recorder.emit("concat", *made, axis=2)
    lasts = [_stacked(recorder, end, answer) for end, answer in zip(ends, shown[1:])]
    return (recorder.emit("permute", x, axes=[1, 0, 2]) if a.batch_first else x, *lasts)


def _one(recorder: Recorder, name: str, inputs: list[Any], *, reverse: bool) -> list[str]:
    """One layer in one direction: its states over time, and of an LSTM the last cell."""
    if name == "lstm":
        return [recorder.emit("lstm", *inputs, reverse=reverse, answer=answer) for answer in ("states", "cell")]
    if name == "gru":
        return [recorder.emit("gru", *inputs, reverse=reverse)]
    return [recorder.emit("rnn", *inputs, reverse=reverse, activation=name.removeprefix("rnn_"))]


def _stacked(recorder: Recorder, parts: list[str], shown: Any) -> str:
    """States (samples, features) of all layers and directions as torch has them, on a first axis."""
    shape = [1, *recorder.dimensions(shown.shape)[1:]]
    return recorder.emit("concat", *[recorder.emit("reshape", part, shape=shape) for part in parts], axis=0)


RECURRENT: dict[str, Converter] = dict.fromkeys(("gru", "lstm", "rnn_tanh", "rnn_relu"), _recurrent)
