"""Sequences of any length: which inputs have an axis of time, and whether a program is right at other lengths too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn

from fewer.core.errors import UserError
from fewer.packs.program import Program
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.runtime import Network
from fewer.packs.shapes.demand import Allowance

__all__ = ["agrees", "candidates", "sequential"]

_LAYERS = (nn.RNNBase, nn.MultiheadAttention, nn.Embedding)
_CALLS = ("aten.rnn_", "aten.gru", "aten.lstm", "aten.embedding", "aten.scaled_dot_product_attention")
_CLOSE = 1e-4  # of the largest answer; a length that was taken for fixed is wrong by far more


def sequential(module: nn.Module) -> bool:
    """Whether a network has a layer that reads sequences."""
    return any(isinstance(part, _LAYERS) or _calls_one(part) for part in module.modules())


def _calls_one(part: nn.Module) -> bool:
    """A network that is kept as a program has calls for layers."""
    return isinstance(part, fx.GraphModule) and any(str(step.target).startswith(_CALLS) for step in part.graph.nodes)


def candidates(inputs: Mapping[str, Tensor]) -> Iterator[tuple[str, ...]]:
    """Inputs that may have time on axis 1, the likeliest choice first: several of features, or whole numbers."""
    sure = [name for name, x in inputs.items() if x.ndim > 2 or (x.ndim == 2 and not x.is_floating_point())]
    if not sure:
        return
    length = inputs[sure[0]].shape[1]
    alike = tuple(name for name, x in inputs.items() if x.ndim > 1 and x.shape[1] == length)
    yield alike
    if (fewer := tuple(name for name in alike if name in sure)) != alike:
        yield fewer


def agrees(module: nn.Module, inputs: Mapping[str, Tensor], program: Program, tensors: Mapping[str, Array]) -> bool:
    """Whether the program answers as the network does, one step and a few more than usual long."""
    assert program.time is not None
    longer = min(program.usual + 3, program.time.most or program.usual + 3)
    network = Network(program, tensors, compiled=False, allowance=Allowance.unlimited())
    return all(_agrees(module, network, _stretched(inputs, program.time.inputs, length)) for length in (1, longer))


def _stretched(inputs: Mapping[str, Tensor], names: tuple[str, ...], length: int) -> dict[str, Tensor]:
    """The inputs repeated along time, cut at a length."""
    times = [1, -(-length // next(iter(inputs[name].shape[1] for name in names)))]
    return {
        name: x.repeat(*times, *[1] * (x.ndim - 2))[:, :length] if name in names else x for name, x in inputs.items()
    }


def _agrees(module: Callable[..., Any], network: Network, inputs: Mapping[str, Tensor]) -> bool:
    try:
        expected = module(*inputs.values())
        found = network.predict(**{name: x.numpy() for name, x in inputs.items()})
    except (UserError, RuntimeError, ValueError, IndexError):  # of this length it has no answer
        return False
    pairs = zip(*(each if isinstance(each, tuple | list) else (each,) for each in (expected, found)))
    return all(_same(np.asarray(torch.as_tensor(a).detach().numpy()), np.asarray(b)) for a, b in pairs)


def _same(a: Array, b: Array) -> bool:
    if a.shape != b.shape:
        return False
    scale = float(np.abs(a[np.isfinite(a)]).max(initial=0)) if a.dtype.kind == "f" else 1.0
    return bool(np.allclose(a, b, rtol=0, atol=_CLOSE * max(scale, 1e-6), equal_nan=True))
