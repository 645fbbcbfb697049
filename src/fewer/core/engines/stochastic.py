"""Layers that draw at random, made to draw what the engine's noise says: a pure function of (seed, step, layer's name).

torch's own draw from a global generator: a cohort refuses them, and what they draw depends on what ran before. Here a
replica draws in a cohort what it draws alone, a killed run goes on to the bit, and a recomputed forward (gradient
checkpointing) sees the same numbers again. `keyed_` swaps them in, so a task writes ordinary torch layers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.engines.layers import looped_

__all__ = ["Dropout", "RReLU", "drawing", "draws", "keyed_"]

Loss = TypeVar("Loss", bound=Callable[..., Tensor])


class _Now:
    """Whose noise is drawn from at this moment; None: torch's global generator."""

    noise: Any = None


@contextmanager
def drawing(noise: Any) -> Iterator[None]:
    """Layers in training mode draw from this noise meanwhile."""
    before, _Now.noise = _Now.noise, noise
    try:
        yield
    finally:
        _Now.noise = before


def draws(loss: Loss) -> Loss:
    """The same loss(nets, batch, noise), during which layers draw from its noise."""
    if getattr(loss, "draws", False):
        return loss

    @functools.wraps(loss)
    def call(nets: Any, batch: Any, noise: Any) -> Tensor:
        with drawing(noise):
            return loss(nets, batch, noise)

    call.draws = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


class Dropout(nn.Module):
    """Zeros a share `p` of the numbers, or of the channels of each sample, and scales up the rest; eval: nothing.

    A sample that would lose all its channels keeps them all: of 32 channels and p = 0.4, one in 5e12.
    """

    def __init__(self, p: float = 0.5, *, channels: bool = False, name: str = "dropout") -> None:
        super().__init__()
        self.p, self.channels, self.name = p, channels, name

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        shape = (*x.shape[:2], *(1,) * (x.ndim - 2)) if self.channels else tuple(x.shape)
        if _Now.noise is None:
            drawn = torch.rand(shape, device=x.device, dtype=x.dtype)
        else:
            drawn = _Now.noise.uniform(self.name, shape)
        kept = drawn >= self.p
        if self.channels and self.p < 1:
            # through instance norms, the gradient of a sample of which nothing is left is no number
            kept = kept | ~kept.any(dim=1, keepdim=True)
        keep = kept.to(x.dtype)
        return x * (keep / (1 - self.p) if self.p < 1 else keep)

    def extra_repr(self) -> str:
        return f"p={self.p}, channels={self.channels}"


class RReLU(nn.Module):
    """Negative numbers times a slope drawn between two bounds for each of them; eval: times the mean slope."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, *, name: str = "rrelu") -> None:
        super().__init__()
        self.lower, self.upper, self.name = lower, upper, name

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return functional.leaky_relu(x, (self.lower + self.upper) / 2)
        if _Now.noise is None:
            return functional.rrelu(x, self.lower, self.upper, training=True)
        drawn = _Now.noise.uniform(self.name, tuple(x.shape)).to(x.dtype)
        return torch.where(x >= 0, x, x * (self.lower + (self.upper - self.lower) * drawn))

    def extra_repr(self) -> str:
        return f"{self.lower:g}, {self.upper:g}"


_BY_NUMBER, _BY_CHANNEL = (nn.Dropout,), (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


def _keyed(layer: nn.Module, name: str) -> nn.Module | None:
    """The layer that does the same from named numbers; None where there is nothing to change."""
    if type(layer) in _BY_NUMBER + _BY_CHANNEL:
        return Dropout(layer.p, channels=type(layer) in _BY_CHANNEL, name=name)  # type: ignore[arg-type]
    if type(layer) is nn.RReLU:
        return RReLU(layer.lower, layer.upper, name=name)
    if isinstance(layer, (Dropout, RReLU)):
        layer.name = name
    return None


def keyed_(modules: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
    """The networks with every random layer of torch's swapped for ours, named by network and place, and batchable."""
    found = dict(modules)
    for network, module in modules.items():
        looped_(module)
        for path, layer in list(module.named_modules(remove_duplicate=False)):
            replacement = _keyed(layer, f"{network}.{path}")
            if replacement is None:
                continue
            replacement.training = layer.training
            if not path:
                found[network] = replacement
            else:
                parent, _, last = path.rpartition(".")
                setattr(module.get_submodule(parent), last, replacement)
    return found
