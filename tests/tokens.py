"""Tasks whose inputs are whole numbers that stand for words: nothing that a gradient can move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fewer.custom.supervised import Classification, Regression

_WORDS, _LENGTH = 3, 80


def sentences(count: int = 60) -> Tensor:
    return torch.randint(0, _WORDS, (count, _LENGTH), generator=torch.Generator().manual_seed(0))


class Reader(nn.Module):
    """Words as columns of a matrix: no table whose vectors could be moved."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self.head = nn.Linear(_WORDS * _LENGTH, answers)

    def forward(self, x: Tensor) -> Tensor:
        columns = (x[..., None] == torch.arange(_WORDS, device=x.device)).flatten(1)
        answer: Tensor = self.head(columns.to(self.head.weight.dtype))
        return answer


class Tagged(Classification):
    recommended = {"steps": 3, "batch": 8}

    def model(self) -> nn.Module:
        return Reader(2)

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        x = sentences()
        return {split: [(x, (x[:, 0] > 0).long())] for split in ("train", "test")}


class Rated(Regression):
    recommended = {"steps": 3, "batch": 8}

    def model(self) -> nn.Module:
        return Reader(1)

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        x = sentences()
        return {split: [(x, x[:, :1].float())] for split in ("train", "test")}
