"""Swin-UNETR from MONAI on rain: time is the depth of a volume, 4 images in, 32 lead times out, in one of four ways.

interleave       every image eight times, so that the volume has 32 slices from the start: the paper's best
channels         two convolutions over time as channels, 4 to 32 to 32, instead of repeating
upsample         the volume keeps its 4 slices; the decoder doubles time three times more at the end
upsample_paper   the same, the encoder's last two stages with as many channels out as in, as the paper says
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.errors import MissingExtra
from fewer.systems.nowcast.task.models.swin_quick import quicken_
from fewer.systems.nowcast.task.windows import LEADS, SEEN

__all__ = ["Swin", "Upsampling", "swin"]

_MULTIPLE = 32  # five halvings
_SMALLEST = 64  # at 32 the bottom would be one voxel, which has no variance


def swin(channels: int, size: int, width: int, adaptation: str) -> nn.Module:
    """The model for one way of making 32 lead times of 4 images."""
    side = max(_SMALLEST, -(-size // _MULTIPLE) * _MULTIPLE)
    if adaptation.startswith("upsample"):
        return Upsampling(channels, size, side, width, equal=adaptation == "upsample_paper")
    return Swin(channels, size, side, width, convolve=adaptation == "channels")


def _monai(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise MissingExtra("model swin without MONAI", "monai", "pip install 'fewer[nowcast]'") from None


class Swin(nn.Module):
    """(batch, channels, SEEN, size, size) to (batch, LEADS, size, size), through a volume of LEADS x side x side."""

    def __init__(self, channels: int, size: int, side: int, width: int = 24, *, convolve: bool = False) -> None:
        super().__init__()
        nets = _monai("monai.networks.nets.swin_unetr")
        self.size, self.side = size, side
        self.times = _over_time() if convolve else None
        self.net = nets.SwinUNETR(in_channels=channels, out_channels=1, feature_size=width)
        quicken_(self.net, nets)
        self.channels_last = False  # the volume's layout in memory
        self._recompute = False

    @property
    def recompute(self) -> bool:
        """Whether MONAI's blocks keep only their inputs for the backward pass."""
        return self._recompute

    @recompute.setter
    def recompute(self, wanted: bool) -> None:
        self._recompute = wanted
        for part in self.net.modules():
            if hasattr(part, "use_checkpoint"):
                part.use_checkpoint = wanted

    def forward(self, x: Tensor) -> Tensor:
        if self.times is None:
            # nearest in space and time alike: image i becomes slices 8 i to 8 i + 7
            volume = functional.interpolate(x, size=[LEADS, self.side, self.side], mode="nearest")
        else:
            slices = self.times(x.transpose(1, 2)).transpose(1, 2)  # (batch, channels, LEADS, size, size)
            size = [LEADS, self.side, self.side]
            volume = functional.interpolate(slices, size=size, mode="trilinear", align_corners=False)
        if self.channels_last:
            volume = volume.contiguous(memory_format=torch.channels_last_3d)
        maps = self.net(volume)[:, 0]
        return functional.interpolate(maps, size=[self.size, self.size], mode="nearest")


def _over_time() -> nn.Sequential:
    parts: list[nn.Module] = []
    for before in (SEEN, LEADS):
        parts += [nn.Conv3d(before, LEADS, 3, padding=1, bias=False), nn.InstanceNorm3d(LEADS), nn.RReLU()]
    return nn.Sequential(*parts)


class Upsampling(nn.Module):
    """The same encoder on 4 slices; time reaches one slice early, and is doubled five times at the end.

    `equal`: the last two stages of the encoder do not double their channels.
    """

    def __init__(self, channels: int, size: int, side: int, width: int = 24, *, equal: bool = False) -> None:
        super().__init__()
        nets, blocks = _monai("monai.networks.nets.swin_unetr"), _monai("monai.networks.blocks")
        self.size, self.side = size, side
        self.encoder = nets.SwinTransformer(
            in_chans=channels, embed_dim=width, window_size=(7, 7, 7), patch_size=(2, 2, 2), depths=(2, 2, 2, 2),
            num_heads=(3, 6, 12, 24), spatial_dims=3,
        )  # fmt: skip
        if equal:
            _keep_channels_(self.encoder, nets, 4 * width)
        quicken_(self.encoder, nets)
        common: dict[str, Any] = {"spatial_dims": 3, "kernel_size": 3, "norm_name": "instance", "res_block": True}
        sizes = [width << (min(level, 2) if equal else level) for level in range(5)]

        def basic(before: int, after: int) -> nn.Module:
            block: nn.Module = blocks.UnetrBasicBlock(in_channels=before, out_channels=after, stride=1, **common)
            return block

        self.skips = nn.ModuleList([basic(channels, width), *(basic(n, n) for n in sizes[:3])])
        self.bottom = basic(sizes[4], sizes[4])
        # from the bottom: space alone three times, while time is one slice, then both
        steps = (1, 2, 2), (1, 2, 2), (1, 2, 2), (2, 2, 2), (2, 2, 2)
        outputs = sizes[3], sizes[2], sizes[1], sizes[0], width
        self.up = nn.ModuleList(
            blocks.UnetrUpBlock(in_channels=before, out_channels=after, upsample_kernel_size=step, **common)
            for before, after, step in zip(sizes[::-1], outputs, steps)
        )
        self.times = nn.ModuleList(_doubled_time(width) for _ in range(3))
        self.out = nn.Conv3d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.interpolate(x, size=[SEEN, self.side, self.side], mode="nearest")
        hidden = self.encoder(x)  # time: 2, then 1; space: side / 2, ..., side / 32
        first, second, third, fourth = (
            skip(part) for skip, part in zip(self.skips, (x, hidden[0], hidden[1], hidden[2]))
        )
        x = self.bottom(hidden[4])
        for up, skip in zip(self.up, (hidden[3], fourth, third, second, first)):
            x = up(x, skip)
        for double in self.times:
            x = double(x)
        return functional.interpolate(self.out(x)[:, 0], size=[self.size, self.size], mode="nearest")


def _keep_channels_(encoder: Any, nets: Any, channels: int) -> None:
    """The last two stages anew, with that many channels in and out; they still halve what they see."""
    for stage, heads in ((encoder.layers3, 12), (encoder.layers4, 24)):
        layer = nets.BasicLayer(
            dim=channels, depth=2, num_heads=heads, window_size=(7, 7, 7), drop_path=[0.0, 0.0], qkv_bias=True,
            downsample=nets.PatchMerging,
        )  # fmt: skip
        layer.downsample.reduction = nn.Linear(8 * channels, channels, bias=False)
        stage[0] = layer


def _doubled_time(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.ConvTranspose3d(width, width, (2, 1, 1), stride=(2, 1, 1), bias=False), nn.InstanceNorm3d(width), nn.RReLU()
    )
