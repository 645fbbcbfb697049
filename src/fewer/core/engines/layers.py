"""Layers of torch's that vmap has no rule for, in operations that it knows: recurrent ones and attention.

`Recurrent` takes over the forward of RNN, GRU and LSTM and is torch's own but under vmap, where it goes through the
sequence step by step. `batchable` keeps attention from its fused kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from fewer.core.errors import UserError

__all__ = ["Cell", "batchable", "looped_", "unrolled"]

State = tuple[Tensor, ...]  # (batch, size) each: h, or h and c
Cell = Callable[[Tensor, State, Sequence[Tensor]], State]  # x, state, weights and biases


@contextmanager
def batchable() -> Iterator[None]:
    """Attention from products and a softmax meanwhile, which vmap and second derivatives know."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def looped_(module: nn.Module) -> None:
    """Let every recurrent layer of a network run under vmap too."""
    for part in module.modules():
        if type(part) in _LOOPED:
            part.__class__ = _LOOPED[type(part)]


def _wrapped(tensor: object) -> bool:
    return isinstance(tensor, Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(tensor)


class _Recurrent(nn.RNNBase):
    def forward(self, input: Any, hx: Any = None) -> Any:
        if not _wrapped(input) and not any(map(_wrapped, self.parameters())):
            return super().forward(input, hx)  # type: ignore[misc]
        if not isinstance(input, Tensor):
            raise UserError("packed sequences in a cohort", "padded tensors", "train seeds one by one: --engine plain")
        first = None if hx is None else hx if isinstance(hx, tuple) else (hx,)
        answer, last = unrolled(input, first, self, _CELLS[self.mode])
        return answer, last if self.mode == "LSTM" else last[0]


class _RNN(_Recurrent, nn.RNN):
    """nn.RNN."""


class _GRU(_Recurrent, nn.GRU):
    """nn.GRU."""


class _LSTM(_Recurrent, nn.LSTM):
    """nn.LSTM."""


_LOOPED: dict[type[nn.Module], type[nn.Module]] = {nn.RNN: _RNN, nn.GRU: _GRU, nn.LSTM: _LSTM}


def unrolled(x: Tensor, first: State | None, layer: nn.RNNBase, cell: Cell) -> tuple[Tensor, State]:
    """The answer and the last states of a recurrent layer, step by step through a cell."""
    alone = x.ndim == 2
    if alone:
        x, first = x.unsqueeze(1), None if first is None else tuple(part.unsqueeze(1) for part in first)
    elif layer.batch_first:
        x = x.transpose(0, 1)  # (time, batch, features)
    directions, kinds = 1 + layer.bidirectional, 2 if layer.mode == "LSTM" else 1
    sizes = (layer.proj_size or layer.hidden_size, layer.hidden_size)[:kinds]
    last: list[State] = []
    for depth in range(layer.num_layers):
        answers = []
        for direction in range(directions):
            place = depth * directions + direction
            zero = x.new_zeros(x.shape[1], 1)
            state = tuple(zero.expand(-1, size) for size in sizes) if first is None else tuple(p[place] for p in first)
            steps = []
            for now in reversed(x.unbind()) if direction else x.unbind():
                state = cell(now, state, layer.all_weights[place])
                steps.append(state[0])
            last.append(state)
            answers.append(torch.stack(steps[::-1] if direction else steps))
        x = torch.cat(answers, -1)
        if layer.dropout and layer.training and depth + 1 < layer.num_layers:
            x = functional.dropout(x, layer.dropout)
    states = tuple(torch.stack(parts) for parts in zip(*last))
    if alone:
        return x.squeeze(1), tuple(part.squeeze(1) for part in states)
    return x.transpose(0, 1) if layer.batch_first else x, states


def _parts(weights: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """weight_ih, weight_hh, bias_ih, bias_hh, weight_hr, of which the last three may not be there."""
    biased = len(weights) > 3
    projection = weights[-1] if len(weights) in (3, 5) else None
    return weights[0], weights[1], weights[2] if biased else None, weights[3] if biased else None, projection


def _rnn(squash: Callable[[Tensor], Tensor]) -> Cell:
    def cell(x: Tensor, state: State, weights: Sequence[Tensor]) -> State:
        w, u, b, d, _ = _parts(weights)
        return (squash(functional.linear(x, w, b) + functional.linear(state[0], u, d)),)

    return cell


def _gru(x: Tensor, state: State, weights: Sequence[Tensor]) -> State:
    w, u, b, d, _ = _parts(weights)
    ours, theirs = functional.linear(x, w, b).chunk(3, -1), functional.linear(state[0], u, d).chunk(3, -1)
    reset, update = torch.sigmoid(ours[0] + theirs[0]), torch.sigmoid(ours[1] + theirs[1])
    new = torch.tanh(ours[2] + reset * theirs[2])
    return (new + update * (state[0] - new),)


def _lstm(x: Tensor, state: State, weights: Sequence[Tensor]) -> State:
    w, u, b, d, projection = _parts(weights)
    into, forget, cell, out = (functional.linear(x, w, b) + functional.linear(state[0], u, d)).chunk(4, -1)
    c = torch.sigmoid(forget) * state[1] + torch.sigmoid(into) * torch.tanh(cell)
    h = torch.sigmoid(out) * torch.tanh(c)
    return (h if projection is None else functional.linear(h, projection), c)


_CELLS: dict[str, Cell] = {"RNN_TANH": _rnn(torch.tanh), "RNN_RELU": _rnn(torch.relu), "GRU": _gru, "LSTM": _lstm}
