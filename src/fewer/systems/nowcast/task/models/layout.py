"""Volumes whose channels lie beside each other in memory, from the first convolution to the last.

Matrix units want them so; a convolution that is given anything else copies its input, its answer and their gradients.
torch's instance norm takes channels apart and makes the next layer do the same; this one leaves them where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["channels_last_"]

_GRAIN = 8  # channels in one load of 16-bit numbers
_LAST = torch.channels_last_3d


def channels_last_(net: nn.Module) -> None:
    """Let the convolutions and instance norms of a network of volumes keep channels last; weights and names stay."""
    for part in net.modules():
        if type(part) in _KEEPING:
            part.__class__ = _KEEPING[type(part)]


class _Conv(nn.Conv3d):
    def forward(self, input: Tensor) -> Tensor:
        weight, more = self.weight, -self.in_channels % _GRAIN
        if more and self.groups == 1:
            weight = functional.pad(weight, (0, 0, 0, 0, 0, 0, 0, more))
            input = functional.pad(input, (0, 0, 0, 0, 0, 0, 0, more))
        weight = weight.contiguous(memory_format=_LAST)
        answer: Tensor = self._conv_forward(input.contiguous(memory_format=_LAST), weight, self.bias)
        return answer


class _Transposed(nn.ConvTranspose3d):
    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        if output_size is not None or isinstance(self.padding, str):
            return super().forward(input, None if output_size is None else list(output_size))
        return functional.conv_transpose3d(
            input.contiguous(memory_format=_LAST), self.weight.contiguous(memory_format=_LAST), self.bias, self.stride,
            self.padding, self.output_padding, self.groups, self.dilation,
        )  # fmt: skip


class _Norm(nn.InstanceNorm3d):
    def forward(self, input: Tensor) -> Tensor:
        if self.track_running_stats or input.ndim != 5:
            return super().forward(input)
        wide = input.float() if input.dtype in (torch.bfloat16, torch.float16) else input
        variance, mean = torch.var_mean(wide, (2, 3, 4), correction=0, keepdim=True)
        answer = (wide - mean) * torch.rsqrt(variance + self.eps)
        if self.affine:
            answer = answer * self.weight[:, None, None, None] + self.bias[:, None, None, None]
        return answer.to(input.dtype)


_KEEPING: dict[type[nn.Module], type[nn.Module]] = {
    nn.Conv3d: _Conv, nn.ConvTranspose3d: _Transposed, nn.InstanceNorm3d: _Norm,
}  # fmt: skip
