"""The fused window attention gives MONAI's own numbers and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fewer.systems.nowcast.task.models.swin_quick import quicken_, regions

torch.set_num_threads(1)
nets = pytest.importorskip("monai.networks.nets.swin_unetr")


def test_regions_say_what_monais_mask_says() -> None:
    for padded, window, shift in (
        ((7, 14, 14), (7, 7, 7), (3, 3, 3)),
        ((4, 14, 7), (4, 7, 7), (0, 3, 3)),
        ((2, 7, 7), (2, 7, 7), (0, 0, 0)),
    ):
        codes = regions(padded, window, shift, device=torch.device("cpu"))
        together = (codes[:, :, None] == codes[:, None]).float()  # 1 where two tokens belong together
        mask = nets.compute_mask(padded, window, shift, torch.device("cpu"))
        assert torch.equal(100 * (together - 1), mask)


def test_the_fused_attention_gives_monais_outputs_and_gradients() -> None:
    torch.manual_seed(0)
    encoder = nets.SwinTransformer(
        in_chans=2, embed_dim=12, window_size=(7, 7, 7), patch_size=(2, 2, 2), depths=(2, 2, 2, 2),
        num_heads=(3, 6, 12, 24), spatial_dims=3,
    ).double()  # fmt: skip
    for name, parameter in encoder.named_parameters():
        if "bias_table" in name:
            torch.nn.init.normal_(parameter)  # as after training: zeros would hide mistakes
    volume = torch.randn(2, 2, 8, 20, 34, dtype=torch.float64)

    def answers() -> tuple[list[Tensor], tuple[Tensor, ...]]:
        found = encoder(volume)
        return found, torch.autograd.grad(sum(part.square().sum() for part in found), list(encoder.parameters()))

    theirs = answers()
    quicken_(encoder, nets)
    swapped = [part for part in encoder.modules() if hasattr(part, "everywhere")]
    assert len(swapped) == 12  # four layers of two blocks
    untouched = answers()
    for part in swapped:
        part.everywhere = True
    ours = answers()
    for one, other in zip(theirs[0], untouched[0]):
        assert torch.equal(one, other)  # on a CPU nothing changes unless asked for
    for one, other in zip((*theirs[0], *theirs[1]), (*ours[0], *ours[1])):
        assert torch.allclose(one, other, rtol=1e-8, atol=1e-8)
