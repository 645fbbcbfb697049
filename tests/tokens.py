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


def reader(answers: int) -> nn.Module:
    return nn.Sequential(nn.Embedding(_WORDS, 2), nn.Flatten(), nn.Linear(2 * _LENGTH, answers))


class Tagged(Classification):
    recommended = {"steps": 3, "batch": 8}

    def model(self) -> nn.Module:
        return reader(2)

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        x = sentences()
        return {split: [(x, (x[:, 0] > 0).long())] for split in ("train", "test")}


class Rated(Regression):
    recommended = {"steps": 3, "batch": 8}

    def model(self) -> nn.Module:
        return reader(1)

    def loaders(self) -> Mapping[str, Iterable[Any]]:
        x = sentences()
        return {split: [(x, x[:, :1].float())] for split in ("train", "test")}
