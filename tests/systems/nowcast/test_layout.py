"""Volumes with channels last give the same numbers, and keep their layout from layer to layer."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from fewer.systems.nowcast.task.models.layout import channels_last_

torch.set_num_threads(1)


def test_a_network_with_channels_last_gives_the_same_outputs_and_gradients() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(
        nn.Conv3d(3, 12, 3, padding=1), nn.InstanceNorm3d(12), nn.LeakyReLU(0.01), nn.Conv3d(12, 8, 1, stride=2),
        nn.InstanceNorm3d(8, affine=True), nn.ConvTranspose3d(8, 5, 2, stride=2),
    ).double()  # fmt: skip
    kept = copy.deepcopy(plain)
    channels_last_(kept)
    assert list(plain.state_dict()) == list(kept.state_dict())
    volume = torch.randn(2, 3, 4, 6, 8, dtype=torch.float64)

    def answers(net: nn.Module) -> tuple[Tensor, ...]:
        found: Tensor = net(volume)
        return found, *torch.autograd.grad(found.square().sum(), list(net.parameters()))

    ours = answers(kept)
    for one, other in zip(answers(plain), ours):
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-10)


def test_the_instance_norm_leaves_channels_last_where_torchs_does_not() -> None:
    volume = torch.randn(2, 8, 4, 6, 8).contiguous(memory_format=torch.channels_last_3d)
    norm = nn.Sequential(nn.InstanceNorm3d(8))
    assert not norm(volume).is_contiguous(memory_format=torch.channels_last_3d)
    channels_last_(norm)
    assert norm(volume).is_contiguous(memory_format=torch.channels_last_3d)
