"""MONAI's window attention for training on CUDA, the same numbers from far less memory traffic.

MONAI writes the scores of every window (343 x 343 for each head) to memory several times in single precision, and a
mask of that size for every window. Here a fused kernel keeps them on the chip. It takes one bias for all windows, so
the mask of shifted windows goes into queries and keys instead: eight more numbers a token, one-hot by the region that a
token comes from, times 10. Tokens of one region then score 100 more than others, which is MONAI's -100 for the others.
A compiler keeps this one kernel only where the bias, which needs a gradient, has rows of a multiple of eight numbers:
tokens are filled up to such a number, and the bias shuts the filled ones out.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.systems.nowcast.task.models.window_attention import fits, window_attention

__all__ = ["quicken_", "regions"]

_APART = 10.0  # its square is what MONAI takes from the score of two tokens that do not belong together
_TOKENS, _WIDTHS = 32, 16  # tokens and numbers a token come in multiples of these: 343 become 352
_NEVER = -1e4  # a score whose exponential is zero in every precision
_REGIONS = 8  # a window touches at most two regions along each of three axes


def quicken_(net: nn.Module, nets: ModuleType) -> None:
    """Let the network's layers use the fused attention where it is faster; weights and names stay."""
    attention, layer = _classes(nets)
    for part in net.modules():
        if type(part) is nets.WindowAttention:
            part.__class__ = attention
        elif type(part) is nets.BasicLayer:
            part.__class__ = layer


def regions(padded: Sequence[int], window: Sequence[int], shift: Sequence[int], *, device: torch.device) -> Tensor:
    """(windows, tokens): which of the eight regions that a shift brings together each token of a window comes from."""
    flags = [torch.arange(size, device=device) >= size - by for size, by in zip(padded, shift)]
    depth, height, width = (flag.long() for flag in flags)
    code = 4 * depth[:, None, None] + 2 * height[:, None] + width  # (depth, height, width), 0 to 7
    parts = [size // step for size, step in zip(padded, window)]
    code = code.reshape(parts[0], window[0], parts[1], window[1], parts[2], window[2])
    return code.permute(0, 2, 4, 1, 3, 5).reshape(-1, window[0] * window[1] * window[2]).to(torch.uint8)


def _pays(part: Any, x: Tensor) -> bool:
    """In training on CUDA; elsewhere MONAI's own lines run. A bench can ask for either."""
    if part.everywhere or part.never:
        return bool(part.everywhere)
    # a compiler cannot look at functorch, and functorch cannot be compiled
    alone = torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is None
    return x.is_cuda and torch.is_grad_enabled() and alone


def _more(size: int, step: int) -> int:
    """What is missing to the next multiple."""
    return -size % step


def _whole(part: Tensor, tokens: int, wide: int) -> Tensor:
    """Tokens and numbers a token filled up with zeros to what fused kernels take; one width for all three."""
    wide += _more(wide, _WIDTHS)
    return functional.pad(part, (0, wide - part.shape[3], 0, _more(tokens, _TOKENS)))


def _shut(bias: Tensor, tokens: int) -> Tensor:
    """The bias of the filled-up tokens: nobody looks at them."""
    more = _more(tokens, _TOKENS)
    return functional.pad(functional.pad(bias, (0, more), value=_NEVER), (0, 0, 0, more))


@functools.cache
def _classes(nets: ModuleType) -> tuple[type[nn.Module], type[nn.Module]]:
    class Attention(nets.WindowAttention):  # type: ignore[misc, name-defined]
        """Attention within windows; `mask` is what `regions` gives, or None."""

        everywhere = never = False
        kernels = True  # on CUDA in half precision; a bench can do without

        def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
            if not _pays(self, x):
                return super().forward(x, mask)  # type: ignore[no-any-return]
            tokens, channels = x.shape[1:]
            heads = self.num_heads
            table = self.relative_position_bias_table[self.relative_position_index[:tokens, :tokens]]
            bias = table.permute(2, 0, 1)  # (heads, tokens, tokens), common to all windows
            together = self.qkv(x)  # (windows, tokens, 3 channels)
            if self.kernels and fits(together, channels // heads):
                return self.proj(window_attention(together, bias, mask, heads))  # type: ignore[no-any-return]
            parts = together.unflatten(2, (3, heads, channels // heads)).permute(2, 0, 3, 1, 4)
            query, key, value = parts.unbind()  # (windows, heads, tokens, channels / heads)
            query = query * self.scale
            if mask is not None:
                # windows of all samples, one sample after another
                code = mask[..., None] == torch.arange(_REGIONS, device=x.device)
                code = _APART * code.to(query.dtype).repeat(x.shape[0] // mask.shape[0], 1, 1)
                code = code[:, None].expand(-1, heads, -1, -1)
                query, key = torch.cat([query, code], dim=3), torch.cat([key, code], dim=3)
            query, key, value = (_whole(part, tokens, query.shape[3]) for part in (query, key, value))
            shut = _shut(bias[None].to(query.dtype), tokens)
            seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=shut, scale=1.0)
            seen = seen[..., :tokens, : channels // heads].transpose(1, 2).flatten(2)
            return self.proj(seen)  # type: ignore[no-any-return]

    class Layer(nets.BasicLayer):  # type: ignore[misc, name-defined]
        """One stage of blocks, which are told regions instead of a mask."""

        everywhere = never = False

        def forward(self, x: Tensor) -> Tensor:
            if not _pays(self, x) or x.ndim != 5 or self.use_hyena:
                return super().forward(x)  # type: ignore[no-any-return]
            sizes = x.shape[2:]
            window, shift = nets.get_window_size(tuple(sizes), self.window_size, self.shift_size)
            padded = [-(-size // step) * step for size, step in zip(sizes, window)]
            codes = regions(padded, window, shift, device=x.device)
            x = x.permute(0, 2, 3, 4, 1)
            for block in self.blocks:
                x = block(x, codes)
            if self.downsample is not None:
                x = self.downsample(x)
            return x.permute(0, 4, 1, 2, 3)

    return Attention, Layer
