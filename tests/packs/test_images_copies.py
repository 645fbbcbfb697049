"""Kept weights that are multiplied with copies of what they read: the same answers, and all of it copied."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fewer.packs.images import planes
from fewer.packs.images.choice import Way, taps_at_once
from tests.packs.test_images import kernels, networks, pruned, written

__all__ = ["kernels"]  # a fixture


class Pointwise(nn.Module):
    """Products of channels at each place, of which few weights are kept, and a sum."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(channels, 70, 3, padding=1), nn.Conv2d(70, 70, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        return torch.tanh(self.second(x) + x)


@pytest.mark.parametrize("size", [(1, 3), (5, 5), (4, 16), (9, 40)])
def test_kept_weights_are_multiplied_with_copies_of_what_they_read(
    size: tuple[int, int], kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planes, "way", lambda *_: Way.PANEL)
    # 60 * 9 weights of a channel are read in several parts
    fast, plain = networks(pruned(Pointwise(60), 0.2), (60, *size))
    for samples in (1, 4):
        x = np.random.default_rng(samples).standard_normal((samples, 60, *size)).astype(np.float32)
        np.testing.assert_allclose(fast.predict(x), plain.predict(x), atol=2e-5)
    assert planes._PANEL in {step[0] for step in written(fast, 1)}


def test_what_is_copied_at_once_stays_in_the_nearest_cache_and_is_all() -> None:
    for taps, vectors in itertools.product((1, 96, 97, 576, 4608), (1, 2, 4, 70)):
        at_once = taps_at_once(taps, vectors)
        assert at_once * 16 * min(vectors, 4) <= 6144 and at_once >= 1
