"""A model by its settings, and what all models share: the order of axes in, lead times one after another out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.models.drift import Drift
from fewer.systems.nowcast.task.models.focus import Focus
from fewer.systems.nowcast.task.models.unet import UNet
from fewer.systems.nowcast.task.models.vivit import ViViT
from fewer.systems.nowcast.task.settings import Settings

__all__ = ["Forecaster", "network"]


class Forecaster(nn.Module):
    """Satellite images, and where they were missing, to logits of rain (batch, LEADS, size, size).

    `deltas`: the body gives the first map and then changes, so that lead times are summed up (temporal shift).
    """

    def __init__(self, body: nn.Module, *, missing: bool = False, deltas: bool = False) -> None:
        super().__init__()
        self.body, self.missing, self.deltas = body, missing, deltas

    def forward(self, satellite: Tensor, missing: Tensor) -> Tensor:
        seen = torch.cat([satellite, missing[:, :, None]], dim=2) if self.missing else satellite
        maps: Tensor = self.body(seen.transpose(1, 2))  # (batch, channels, SEEN, size, size)
        return maps.cumsum(dim=1) if self.deltas else maps


def network(settings: Settings, size: int) -> Forecaster:
    """The model that the settings name, fresh."""
    channels = len(BANDS) + settings.missing
    body = _body(settings, channels, size)
    if settings.checkpoint:
        for part in body.modules():
            if hasattr(part, "recompute"):
                setattr(part, "recompute", True)  # noqa: B010
    return Forecaster(body, missing=settings.missing, deltas=settings.deltas)


def _body(settings: Settings, channels: int, size: int) -> nn.Module:
    width = settings.features
    if settings.model in ("focus", "drift"):
        kind = Focus if settings.model == "focus" else Drift
        return kind(channels, size, width, dropout=0.1 if settings.dropout is None else settings.dropout)
    if settings.model == "vivit":
        return ViViT(channels, size, width)
    if settings.model == "swin":
        from fewer.systems.nowcast.task.models.swin import swin  # MONAI is heavy

        return swin(channels, size, width, settings.adaptation)
    improved = settings.model == "improved"
    return UNet(
        channels,
        width,
        improved=improved,
        resize=improved and not settings.transposed,
        gates=improved and settings.gates,
        dropout=0.4 if settings.dropout is None else settings.dropout,
    )
