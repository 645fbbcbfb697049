"""Batch norms whose sums C computes: beside sparse convolutions torch's own would be a third of a training step."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import _are_functorch_transforms_active as _under_func
from torch.nn import functional

from fewer.sparse.call_recorder import note
from fewer.sparse.pattern import has_kernels, kernels

__all__ = ["Norm", "normed"]

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def normed(module: nn.Module) -> nn.Module:
    """A batch norm with faster sums in place of torch's, with its parameters and buffers; another module itself."""
    if type(module) not in _NORMS or not isinstance(module, nn.modules.batchnorm._BatchNorm):
        return module
    if not module.affine or not module.track_running_stats or module.momentum is None:
        return module
    result = Norm(module.num_features, module.eps, module.momentum)
    result._parameters, result._buffers = module._parameters, module._buffers
    return result.train(module.training)


class Norm(nn.modules.batchnorm._BatchNorm):
    """`nn.BatchNorm1d`, `nn.BatchNorm2d` or `nn.BatchNorm3d`; torch's own wherever more than one gradient is wanted."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected samples and features (got {input.dim()}D input)")  # as torch's own

    def forward(self, input: Tensor) -> Tensor:
        x, weight = input, self.weight
        serves = self.training and x.dim() > 2 and x.numel() > x.shape[1] and has_kernels(x) and x.dtype is weight.dtype
        if not serves or _under_func() or torch.get_num_threads() > 1:  # torch shares its sums among threads
            return super().forward(x)
        answer, mean, variance = _Normed.apply(x, weight, self.bias, self.eps)
        count = x.numel() // x.shape[1]
        with torch.no_grad():
            running_mean, running_var = self.running_mean, self.running_var
            assert running_mean is not None and running_var is not None and self.num_batches_tracked is not None
            momentum = float(self.momentum or 0.0)
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(variance * (count / (count - 1)), momentum)
            self.num_batches_tracked.add_(1)
        return answer  # type: ignore[no-any-return]


def _call(x: Tensor, gy: Tensor | None, gx: Tensor | None, numbers: tuple[Tensor, ...]) -> None:
    """By the kernels, which read and write `numbers`, three of each channel in double precision."""
    call = partial(
        kernels.norm, x.dtype is torch.float64, x.shape[0], x.shape[1], math.prod(x.shape[2:]), x.data_ptr(),
        0 if gy is None else gy.data_ptr(), 0 if gx is None else gx.data_ptr(), *[each.data_ptr() for each in numbers],
    )  # fmt: skip
    call()
    note("norm", call, (x, gy, *numbers), numbers if gx is None else (gx,))


def _sums(x: Tensor, gy: Tensor | None, means: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel, or the sums of a gradient, in double precision."""
    first = torch.zeros(x.shape[1], dtype=torch.float64)
    if means is not None:
        first.copy_(means)
    second = torch.zeros_like(first)
    _call(x, gy, None, (first, second, second))
    return first, second


class _Normed(torch.autograd.Function):
    """Answers, means and variances; the latter two for the running ones, without a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        x = x.contiguous()
        mean, variance = (sums.to(x.dtype) for sums in _sums(x, None, None))
        answer = torch.native_batch_norm(x, weight, bias, mean, variance, False, 0.0, eps)[0]
        ctx.eps = eps
        ctx.save_for_backward(x, weight, bias, mean, variance)
        ctx.mark_non_differentiable(mean, variance)
        return answer, mean, variance

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gy, (x, weight, bias, mean, variance) = gradients[0].contiguous(), ctx.saved_tensors
        if torch.is_grad_enabled():
            return *_differentiable(gy, x, weight, bias, ctx.eps, ctx.needs_input_grad), None
        total, product = _sums(x, gy, mean)
        slope = (variance.double() + ctx.eps).rsqrt()
        gx, count = None, x.numel() // x.shape[1]
        if ctx.needs_input_grad[0]:
            by_gradient = weight.double() * slope
            by_input = -by_gradient * slope.square() * product / count
            constant = -by_gradient * total / count - by_input * mean.double()
            gx = torch.empty_like(x)
            _call(x, gy, gx, (by_gradient, by_input, constant))
        return gx, (product * slope).to(x.dtype), total.to(x.dtype), None


def _differentiable(
    gy: Tensor, x: Tensor, weight: Tensor, bias: Tensor, eps: float, needs: tuple[bool, ...]
) -> list[Tensor | None]:
    """The same gradients as functions of their inputs, for a second differentiation."""
    inputs = [tensor for tensor, needed in zip((x, weight, bias), needs) if needed]
    answer = functional.batch_norm(x, None, None, weight, bias, True, 0.0, eps)
    found = iter(torch.autograd.grad(answer, inputs, gy, create_graph=True))
    return [next(found) if needed else None for needed in needs[:3]]
