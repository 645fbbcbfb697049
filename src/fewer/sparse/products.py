"""Differentiable products with kept weights.

`Mul` multiplies kept weights and activations, `Dot` multiplies two activations at the kept positions. The
gradient of either is made of the two, so both can be differentiated any number of times, under `torch.func` too:

    y = Mul(w, x)       dw = Dot(dy, x)      dx = Mul(w, dy, transposed)
    w = Dot(g, x)       dg = Mul(dw, x)      dx = Mul(dw, g, transposed)

`apply_chain` is the fast way through one or more layers; where it cannot be used, or where its gradient is
itself differentiated, the layers are composed of `Mul` and `Dot`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active as _under_func

from fewer.core.errors import UserError
from fewer.sparse.pattern import Chain, Pattern, has_kernels
from fewer.sparse.planes import Planes

__all__ = ["Dot", "Mul", "apply_chain", "compose"]

Product = Pattern | Planes  # linear, or a convolution
Weights = tuple[Tensor | None, ...]  # values and bias of each layer in turn


class Mul(torch.autograd.Function):
    """(samples, in, ...) to (samples, out, ...) through kept weights, or back to (samples, in, ...) when transposed."""

    @staticmethod
    def forward(values: Tensor, x: Tensor, pattern: Product, transposed: bool) -> Tensor:
        return pattern.multiply(values, x, transposed)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        values, x, ctx.pattern, ctx.transposed = inputs
        ctx.save_for_backward(values, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gy,), (values, x), transposed = gradients, ctx.saved_tensors, ctx.transposed
        outer, inner = (x, gy) if transposed else (gy, x)
        wants_values, wants_x = ctx.needs_input_grad[:2]
        g_values = Dot.apply(outer, inner, ctx.pattern) if wants_values else None
        gx = Mul.apply(values, gy, ctx.pattern, not transposed) if wants_x else None
        return g_values, gx, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], values: Tensor, x: Tensor, pattern: Product, transposed: bool
    ) -> tuple[Tensor, int]:
        if in_dims[0] is None and in_dims[1] is not None:
            x = x.movedim(in_dims[1], 0)
            y = Mul.apply(values, x.flatten(0, 1), pattern, transposed)
            return y.unflatten(0, x.shape[:2]), 0
        each_values, each_x = _unbound(info.batch_size, in_dims, values, x)
        return torch.stack([Mul.apply(v, a, pattern, transposed) for v, a in zip(each_values, each_x)]), 0


class Dot(torch.autograd.Function):
    """(samples, out, ...) and (samples, in, ...) to one product per kept weight, summed over the samples."""

    @staticmethod
    def forward(g: Tensor, x: Tensor, pattern: Product) -> Tensor:
        return pattern.dot(g, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        g, x, ctx.pattern = inputs
        ctx.save_for_backward(g, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (g_values,), (g, x) = gradients, ctx.saved_tensors
        wants_g, wants_x = ctx.needs_input_grad[:2]
        gg = Mul.apply(g_values, x, ctx.pattern, False) if wants_g else None
        gx = Mul.apply(g_values, g, ctx.pattern, True) if wants_x else None
        return gg, gx, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], g: Tensor, x: Tensor, pattern: Product) -> tuple[Tensor, int]:
        each_g, each_x = _unbound(info.batch_size, in_dims, g, x)
        return torch.stack([Dot.apply(a, b, pattern) for a, b in zip(each_g, each_x)]), 0


def _unbound(size: int, in_dims: tuple[int | None, ...], *tensors: Tensor) -> list[tuple[Tensor, ...]]:
    """The slices of each tensor along its vmapped axis; a tensor without one is every slice itself."""
    return [(t,) * size if axis is None else t.unbind(axis) for t, axis in zip(tensors, in_dims)]


def compose(chain: Chain | Planes, x: Tensor, weights: Weights) -> Tensor:
    """The chain layer by layer, differentiable any number of times."""
    for i, (pattern, relu) in enumerate(zip(chain.patterns, chain.relu)):
        values, bias = weights[2 * i], weights[2 * i + 1]
        x = Mul.apply(values, x, pattern, False)
        if bias is not None:
            x = x + bias.reshape(-1, *(1,) * (x.dim() - 2))
        if relu:
            x = x.relu()
    return x


class _Fused(torch.autograd.Function):
    """A whole chain as one node. Without setup_context: torch would bind its signature anew in each call."""

    @staticmethod
    def forward(ctx: Any, chain: Chain | Planes, x: Tensor, *weights: Tensor | None) -> Tensor:
        ctx.chain, ctx.threads = chain, chain.threads(x.shape[0])
        ctx.room = chain.room(x, ctx.threads) if isinstance(chain, Chain) and chain.hidden_features and len(x) else None
        hidden = None if ctx.room is None else ctx.room.tensor
        y = chain.forward(x, weights, ctx.threads, hidden=hidden)
        ctx.save_for_backward(x, y if chain.relu[-1] else None, *weights)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gy,), (x, y, *weights) = gradients, ctx.saved_tensors
        needs = ctx.needs_input_grad
        if torch.is_grad_enabled():
            return None, *_composed_gradients(ctx.chain, gy, x, tuple(weights), needs[1:])
        hidden = None if ctx.room is None else ctx.room.tensor
        # without a gradient for x, weights are why this node runs
        wants = needs[1], any(needs[2:]) and (not needs[1] or any(map(_is_wanted, ctx.next_functions[1:])))
        gx, found = ctx.chain.backward(gy, x, tuple(weights), ctx.threads, hidden=hidden, y=y, wants=wants)
        return None, gx, *found


def _is_wanted(function: tuple[Any, int]) -> bool:
    """Whether this backward pass goes on into a node: gradients of weights that nobody asked for cost much.

    Torch tells its own functions; Python ones can only ask this, which raises for a leaf that `autograd.grad`
    was asked for. Raising costs as much as a small layer, so `apply_chain` puts a view before the first leaf.
    """
    node = function[0]
    if node is None:
        return False
    try:
        return torch._C._will_engine_execute_node(node)
    except RuntimeError:
        return True


def _composed_gradients(
    chain: Chain | Planes, gy: Tensor, x: Tensor, weights: Weights, needs: tuple[bool, ...]
) -> list[Tensor | None]:
    """The same gradients as functions of their inputs, for a second differentiation."""
    inputs = [tensor for tensor, needed in zip((x, *weights), needs) if needed and tensor is not None]
    found = iter(torch.autograd.grad(compose(chain, x, weights), inputs, gy, create_graph=True))
    return [next(found) if needed else None for needed in needs]


def apply_chain(chain: Chain | Planes, x: Tensor, weights: Weights) -> Tensor:
    """Outputs of (samples, features), by the fastest way that can be differentiated as the caller may need."""
    if not has_kernels(x) or _under_func():
        return compose(chain, x, weights)
    for weight, size in zip(weights, chain.sizes):
        if weight is not None and (weight.numel() != size or weight.dtype is not x.dtype):
            given = f"weights of shape {tuple(weight.shape)} and {weight.dtype}"
            raise UserError(given, f"({size},) and {x.dtype}, as the layer was made")
    if not all(weight is None or weight.is_contiguous() for weight in weights):
        weights = tuple(None if weight is None else weight.contiguous() for weight in weights)
    if torch.is_grad_enabled() and (x.requires_grad or any(w is not None and w.requires_grad for w in weights)):
        first = weights[0]
        if x.requires_grad and first is not None and first.requires_grad:
            weights = (first.view(-1), *weights[1:])
        result: Tensor = _Fused.apply(chain, x, *weights)
        return result
    return chain.forward(x, weights, chain.threads(x.shape[0]))
