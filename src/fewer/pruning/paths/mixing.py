"""Operations that mix by rules of their own, as sums over all that they could let through: what skeletons use.

Means instead of sums where a sequence is long, so that a number of paths stays a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.engines.layers import State, unrolled

__all__ = ["OPERATIONS", "TABLES"]


def _embedding(input: Tensor, weight: Tensor, *more: Any, **options: Any) -> Tensor:
    """Every row at every place: (..., features)."""
    return weight.sum(0).expand(*input.shape, weight.shape[1])


def _embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, *more: Any, **options: Any) -> Tensor:
    bags = len(input) if offsets is None else len(offsets)
    return weight.sum(0).expand(bags, weight.shape[1])


def _attention(query: Tensor, key: Tensor, value: Tensor, *more: Any, **options: Any) -> Tensor:
    """(..., L, E) queries and all of (..., S, E) keys and values to (..., L, E)."""
    groups = query.shape[-3] // value.shape[-3] if query.ndim > 3 else 1
    if groups > 1:
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    seen = value.mean(-2, keepdim=True) + (query.mean(-1, keepdim=True) + key.mean((-1, -2), keepdim=True))
    return seen.expand(*query.shape[:-1], value.shape[-1])


def _heads(query: Tensor, key: Tensor, value: Tensor, *more: Any, **options: Any) -> tuple[Tensor, None]:
    """As `functional.multi_head_attention_forward`: (L, batch, features) of each, projected, seen, projected."""
    names = ("embed_dim_to_check", "num_heads", "in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "add_zero_attn",
             "dropout_p", "out_proj_weight", "out_proj_bias")  # fmt: skip
    given: Mapping[str, Any] = dict(zip(names, more)) | options
    if given.get("use_separate_proj_weight"):
        weights: Sequence[Tensor] = [given[f"{name}_proj_weight"] for name in "qkv"]
    else:
        weights = given["in_proj_weight"].chunk(3)
    q, k, v = (functional.linear(part, weight) for part, weight in zip((query, key, value), weights))
    seen = q + (k + v).mean(0, keepdim=True)
    return functional.linear(seen, given["out_proj_weight"]), None


class _Shape(nn.Module):
    """What `unrolled` asks of a recurrent layer."""

    def __init__(self, flat: Sequence[Tensor], gates: int, words: Sequence[Any]) -> None:
        super().__init__()
        _, self.num_layers, _, self.training, self.bidirectional, *rest = words
        self.batch_first = bool(rest[0]) if rest else False
        self.mode = "LSTM" if gates == 4 else "GRU"
        count = len(flat) // (self.num_layers * (1 + self.bidirectional))
        self.all_weights = [list(flat[i : i + count]) for i in range(0, len(flat), count)]
        self.hidden_size = flat[0].shape[0] // gates
        self.proj_size = flat[1].shape[1] if flat[1].shape[1] != self.hidden_size else 0
        self.dropout = 0.0


def _recurrent(gates: int) -> Callable[..., tuple[Tensor, ...]]:
    def cell(x: Tensor, state: State, weights: Sequence[Tensor]) -> State:
        """Every gate lets everything through, from the input and from what was before."""
        size = weights[1].shape[1]
        parts = functional.linear(x, weights[0]) + functional.linear(state[0], weights[1]) / size
        through = sum(parts.chunk(gates, -1), torch.zeros_like(parts[..., : parts.shape[-1] // gates]))
        if len(weights) in (3, 5):
            return (functional.linear(through, weights[-1]), through)
        return (through,) * len(state)

    def run(x: Tensor, hidden: Any, flat: Any, *words: Any) -> tuple[Tensor, ...]:
        first = hidden if isinstance(hidden, tuple | list) else (hidden,)
        zero = tuple(torch.zeros_like(part) for part in first)
        answer, last = unrolled(x, zero, _Shape(flat, gates, words), cell)  # type: ignore[arg-type]
        return (answer, *last)

    return run


TABLES: dict[str, Callable[..., Tensor]] = {"embedding": _embedding, "embedding_bag": _embedding_bag}
OPERATIONS: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": _attention, "multi_head_attention_forward": _heads,
    "rnn_tanh": _recurrent(1), "rnn_relu": _recurrent(1), "gru": _recurrent(3), "lstm": _recurrent(4),
}  # fmt: skip
