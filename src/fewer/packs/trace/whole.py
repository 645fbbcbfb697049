"""Recurrent layers that torch.export leaves whole, so that their length may vary.

torch takes `gru` and its kind apart step by step while it exports, which fixes the length of the example; torch 2.11
gives the last states of an `lstm` an axis too many besides. Operations of the same signature stand in for them
meanwhile; what is exported may have torch's own put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.modules import rnn

__all__ = ["kept_whole", "put_back_"]

_REST = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
)
_ONE, _TWO = (
    "(Tensor input, Tensor hx, {}) -> (Tensor, Tensor)",
    "(Tensor input, Tensor[] hx, {}) -> (Tensor, Tensor, Tensor)",
)
_SIGNATURES = {"gru": _ONE, "rnn_tanh": _ONE, "rnn_relu": _ONE, "lstm": _TWO}
_library = torch.library.Library("fewer", "DEF")


def _imitate(input: Tensor, hx: Any, *rest: Any) -> tuple[Tensor, ...]:
    """Shapes and types of what a layer answers."""
    states = list(hx) if isinstance(hx, list | tuple) else [hx]
    width = states[0].shape[-1] * (2 if rest[5] else 1)
    return (input.new_empty(*input.shape[:2], width), *(torch.empty_like(state) for state in states))


def _own(name: str) -> Any:
    return getattr(torch.ops.aten, name).input


def _define(name: str, signature: str) -> None:
    _library.define(name + signature.format(_REST))
    _library.impl(name, lambda *given: _own(name)(*given), "CompositeExplicitAutograd")
    torch.library.register_fake(f"fewer::{name}", _imitate, lib=_library)


for _name, _signature in _SIGNATURES.items():
    _define(_name, _signature)


def _stand_in(name: str) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        packed = isinstance(given[2], Tensor)  # of sequences of several lengths: another signature
        return getattr(torch._VF, name)(*given) if packed else getattr(torch.ops.fewer, name)(*given)  # type: ignore[attr-defined]

    return call


@contextmanager
def kept_whole(module: nn.Module) -> Iterator[None]:
    """Meanwhile recurrent layers, and calls of them in networks that are kept as programs, are the stand-ins."""
    before = rnn._VF  # type: ignore[attr-defined]
    rnn._VF = SimpleNamespace(**{name: _stand_in(name) for name in _SIGNATURES})  # type: ignore
    graphs = [part for part in module.modules() if isinstance(part, fx.GraphModule)]
    for graph in graphs:
        _retarget_(graph, {_own(name): getattr(torch.ops.fewer, name).default for name in _SIGNATURES})
    try:
        yield
    finally:
        rnn._VF = before  # type: ignore[attr-defined]
        for graph in graphs:
            put_back_(graph)


def put_back_(graph: fx.GraphModule) -> None:
    """Let torch's own operations be called again."""
    _retarget_(graph, {getattr(torch.ops.fewer, name).default: _own(name) for name in _SIGNATURES})


def _retarget_(graph: fx.GraphModule, targets: dict[Any, Any]) -> None:
    changed = [step for step in graph.graph.nodes if step.op == "call_function" and step.target in targets]
    for step in changed:
        step.target = targets[step.target]
    if changed:
        graph.recompile()
