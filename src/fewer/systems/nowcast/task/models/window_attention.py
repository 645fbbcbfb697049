"""Attention within windows as one operation that a compiler takes as it is: Triton's kernels on CUDA."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

__all__ = ["fits", "window_attention"]

_TRITON = find_spec("triton") is not None  # comes with torch for CUDA
_WIDEST = 24  # numbers a head that still leave a tile's row, with the region's code, in 32


def fits(qkv: Tensor, head: int) -> bool:
    """Whether the kernels are for it: numbers of 16 bit on a GPU, where nobody differentiates twice."""
    if not _TRITON or qkv.dtype not in (torch.bfloat16, torch.float16) or head % 8 or head > _WIDEST:
        return False
    # who differentiates twice turns torch's fused kernels off: see core.engines.layers
    return qkv.is_cuda and (torch.compiler.is_compiling() or torch.backends.cuda.mem_efficient_sdp_enabled())


def window_attention(qkv: Tensor, bias: Tensor, codes: Tensor | None, heads: int) -> Tensor:
    """(windows, tokens, 3 channels) to (windows, tokens, channels).

    `bias` (heads, tokens, tokens) is added to the scores of every window; `codes` (kinds, tokens) says which region a
    token comes from, the windows' kinds taking turns, and tokens of two regions do not see each other.
    """
    answer: Tensor = _operation(qkv, bias, codes, heads)[0]
    return answer


@torch.library.custom_op("fewer::window_attention", mutates_args=())
def _operation(qkv: Tensor, bias: Tensor, codes: Tensor | None, heads: int) -> tuple[Tensor, Tensor]:
    from fewer.systems.nowcast.task.models import window_kernels

    return window_kernels.forward(qkv.contiguous(), bias, codes, heads)


@_operation.register_fake
def _(qkv: Tensor, bias: Tensor, codes: Tensor | None, heads: int) -> tuple[Tensor, Tensor]:
    windows, tokens, channels = qkv.shape
    side = -(-tokens // 128) * 128
    return qkv.new_empty(windows, tokens, channels // 3), qkv.new_empty(windows, heads, side, dtype=torch.float32)


@torch.library.custom_op("fewer::window_attention_backward", mutates_args=())
def _derivative(
    grad: Tensor, qkv: Tensor, bias: Tensor, codes: Tensor | None, out: Tensor, lse: Tensor, heads: int
) -> tuple[Tensor, Tensor]:
    from fewer.systems.nowcast.task.models import window_kernels

    return window_kernels.backward(grad.contiguous(), qkv.contiguous(), bias, codes, out, lse, heads)


@_derivative.register_fake
def _(
    grad: Tensor, qkv: Tensor, bias: Tensor, codes: Tensor | None, out: Tensor, lse: Tensor, heads: int
) -> tuple[Tensor, Tensor]:
    return qkv.new_empty(qkv.shape), bias.new_empty(bias.shape)


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    qkv, bias, codes, ctx.heads = inputs
    ctx.save_for_backward(qkv, bias, codes, *output)


def _back(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    qkv, bias, codes, out, lse = ctx.saved_tensors
    return *_derivative(grad, qkv, bias, codes, out, lse, ctx.heads), None, None


_operation.register_autograd(_back, setup_context=_keep)
