"""What the convolutional models are built of: convolutions with norm and activation, gates on skips, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

__all__ = ["Gate", "Resize", "convolution", "recomputed"]


def convolution(inputs: int, outputs: int, *, improved: bool, dropout: float = 0.0) -> nn.Sequential:
    """3 x 3 x 3, no bias as a norm follows; the improved baseline has instance norm and RReLU for batch norm, ReLU."""
    parts: list[nn.Module] = [nn.Conv3d(inputs, outputs, 3, padding=1, bias=False), *ending(outputs, improved)]
    if dropout:
        parts.append(nn.Dropout3d(dropout))
    return nn.Sequential(*parts)


def ending(channels: int, improved: bool) -> tuple[nn.Module, nn.Module]:
    """Norm and activation."""
    if improved:
        return nn.InstanceNorm3d(channels, affine=True), nn.RReLU()
    return nn.BatchNorm3d(channels), nn.ReLU()


class Resize(nn.Module):
    """Twice the size by interpolation, then a convolution: no checkerboards as transposed convolutions leave."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.convolution = nn.Conv3d(inputs, outputs, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        sizes = [2 * n for n in x.shape[2:]]
        larger = functional.interpolate(x, size=sizes, mode="trilinear", align_corners=False)
        return self.convolution(larger)  # type: ignore[no-any-return]


class Gate(nn.Module):
    """Attention on a skip connection (Oktay et al., 2018): where the coarser level looks, the finer one passes.

    a = sigmoid(psi(relu(theta(skip) + phi(gating)))), computed on the coarser grid, then W(a * skip).
    """

    def __init__(self, channels: int, gating: int) -> None:
        super().__init__()
        inner = max(1, channels // 2)
        self.theta = nn.Conv3d(channels, inner, 2, stride=2, bias=False)
        self.phi = nn.Conv3d(gating, inner, 1)
        self.psi = nn.Conv3d(inner, 1, 1)
        self.out = nn.Sequential(nn.Conv3d(channels, channels, 1, bias=False), nn.InstanceNorm3d(channels, affine=True))

    def forward(self, skip: Tensor, gating: Tensor) -> Tensor:
        depth, height, width = skip.shape[2:]
        # to even sizes: the coarser grid was pooled with a last window that hangs over
        even = functional.pad(skip, (0, width % 2, 0, height % 2, 0, depth % 2))
        attention = torch.sigmoid(self.psi(functional.relu(self.theta(even) + self.phi(gating))))
        size = [depth, height, width]
        attention = functional.interpolate(attention, size=size, mode="trilinear", align_corners=False)
        return self.out(skip * attention)  # type: ignore[no-any-return]


def recomputed(block: nn.Module, x: Tensor, *, wanted: bool) -> Tensor:
    """block(x), keeping only x for the backward pass where that is wanted and possible.

    Under vmap nothing can be recomputed, and a compiler decides for itself what to keep; the answer is the same.
    """
    if not wanted or not block.training or torch.compiler.is_compiling():
        return block(x)  # type: ignore[no-any-return]
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return block(x)  # type: ignore[no-any-return]

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), _without_statistics(block)

    run: Callable[..., Tensor] = checkpoint
    return run(block, x, use_reentrant=False, preserve_rng_state=False, context_fn=contexts)


@contextmanager
def _without_statistics(block: nn.Module) -> Iterator[None]:
    """Batch norms move their running mean in the first forward only, not again when it is repeated."""
    norms = [part for part in block.modules() if isinstance(part, (nn.BatchNorm2d, nn.BatchNorm3d))]
    before = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, before):
            norm.momentum = momentum
            if norm.num_batches_tracked is not None:
                norm.num_batches_tracked.sub_(1)
