"""The paper's video transformer: a class token for each image, one for the sequence, and all maps from that one."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.systems.nowcast.task.models.blocks import recomputed
from fewer.systems.nowcast.task.windows import LEADS, SEEN

__all__ = ["ViViT"]

_PATCH = 16  # pixels
_DEPTH, _EXPANSION = 8, 4


class Layer(nn.Module):
    """Attention and two dense layers, each on normed tokens and added to them."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.heads = 8 if tokens % 8 == 0 else 4
        self.norm1, self.norm2 = nn.LayerNorm(tokens), nn.LayerNorm(tokens)
        self.qkv, self.out = nn.Linear(tokens, 3 * tokens), nn.Linear(tokens, tokens)
        self.dense = nn.Sequential(
            nn.Linear(tokens, _EXPANSION * tokens), nn.GELU(), nn.Linear(_EXPANSION * tokens, tokens)
        )

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=2)
        )  # (batch, heads, places, tokens / heads)
        scores = torch.matmul(queries, keys.transpose(2, 3)) / queries.shape[3] ** 0.5
        seen = torch.matmul(torch.softmax(scores, dim=3), values).transpose(1, 2).flatten(2)
        x = x + self.out(seen)
        return x + self.dense(self.norm2(x))  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """The class token after eight layers."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, tokens))
        self.layers = nn.ModuleList(Layer(tokens) for _ in range(_DEPTH))
        self.norm = nn.LayerNorm(tokens)
        self.recompute = False

    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + places
        for layer in self.layers:
            x = recomputed(layer, x, wanted=self.recompute)
        return self.norm(x[:, 0])  # type: ignore[no-any-return]


class ViViT(nn.Module):
    """(batch, channels, SEEN, size, size) to (batch, LEADS, size, size); `side` x `side` numbers are a token."""

    def __init__(self, channels: int, size: int, side: int = 20) -> None:
        super().__init__()
        tokens, across = side * side, -(-size // _PATCH)
        self.size, self.side, self.across = size, side, across
        self.patches = nn.Conv2d(channels, tokens, _PATCH, stride=_PATCH)
        self.places = nn.Parameter(0.02 * torch.randn(1, SEEN, across * across + 1, tokens))
        self.times = nn.Parameter(0.02 * torch.randn(1, SEEN + 1, tokens))
        self.space, self.time = Encoder(tokens), Encoder(tokens)
        self.maps = nn.Linear(tokens, LEADS * tokens)
        self.out = nn.Conv2d(LEADS, LEADS, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        images = x.transpose(1, 2).flatten(0, 1)  # (batch * SEEN, channels, size, size)
        side = self.across * _PATCH
        images = functional.interpolate(images, size=[side, side], mode="nearest")
        patches = self.patches(images).flatten(2).transpose(1, 2)
        places = self.places.expand(x.shape[0], -1, -1, -1).flatten(0, 1)
        seen = self.space(patches, places).unflatten(0, (-1, SEEN))
        whole = self.maps(self.time(seen, self.times)).reshape(-1, LEADS, self.side, self.side)
        return self.out(functional.interpolate(whole, size=[self.size, self.size], mode="nearest"))  # type: ignore[no-any-return]
