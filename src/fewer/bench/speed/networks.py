"""The networks whose speed is told: those of the fields, and recurrent, attending and fully connected ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fewer.core.registry import systems
from fewer.core.system import imported
from fewer.packs.runtime.ops import Array

__all__ = ["Subject", "drawn", "kept", "subjects"]


@dataclass(frozen=True)
class Subject:
    """A network, how it is made, and the shape of one sample of its input."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]


class Recurrent(nn.Module):
    """A GRU over a sequence and a linear layer on its last state."""

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(inputs, size, batch_first=True), nn.Linear(size, 10)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, features) to (batch, 10)."""
        return self.head(self.gru(x)[0][:, -1])  # type: ignore[no-any-return]


class Attending(nn.Module):
    """One block of a transformer, normalised first: attention of several heads, then two linear layers."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(size), nn.LayerNorm(size)
        self.into, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.wide = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, tokens, features) to the same."""
        batch, tokens, size = x.shape
        parts = self.into(self.norm1(x)).view(batch, tokens, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, size))
        return x + self.wide(self.norm2(x))  # type: ignore[no-any-return]


def layered(*widths: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


_OWN = (
    Subject("GRU 64-256, 32 steps", lambda: Recurrent(64, 256), (32, 64)),
    Subject("transformer block 256, 64 tokens", lambda: Attending(256, 8), (64, 256)),
    Subject("MLP 17-400-300-6", lambda: layered(17, 400, 300, 6), (17,)),
    Subject("MLP 256-1024-1024-10", lambda: layered(256, 1024, 1024, 10), (256,)),
)


def subjects() -> dict[str, Subject]:
    """All of them by name: what systems name, then our own."""
    found = [Subject(*one) for system in systems().values() if system.speed for one in imported(system.speed)()]
    return {one.name: one for one in (*found, *_OWN)}


def kept(weights: Mapping[str, Array], density: float, *, together: bool = False) -> dict[str, Array]:
    """The largest weights of every matrix and kernel: the same share of each, or of all `together`."""
    prunable = {name: value for name, value in weights.items() if value.ndim > 1}
    if density >= 1:
        return {name: value.copy() for name, value in weights.items()}  # torch's own would change with the network
    whole = _limit(np.concatenate([np.abs(value).ravel() for value in prunable.values()]), density)
    found = dict(weights)
    for name, value in prunable.items():
        limit = whole if together else _limit(np.abs(value).ravel(), density)
        found[name] = np.where(np.abs(value) > limit, value, np.float32(0))
    return found


def _limit(sizes: Array, density: float) -> float:
    place = max(0, round((1 - density) * len(sizes)) - 1)
    return float(np.partition(sizes, place)[place])


def drawn(subject: Subject, seed: int = 0) -> nn.Module:
    """With torch's own first weights, norms that have seen something, ready to predict."""
    torch.manual_seed(seed)
    net = subject.make()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
            assert module.running_var is not None and module.running_mean is not None
            module.running_var.uniform_(0.5, 1.5)
            module.running_mean.normal_(0.0, 0.1)
    return net.eval()
