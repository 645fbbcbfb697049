"""A model by its settings, and what all models share: the order of axes in, lead times one after another out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.models.drift import Drift
from fewer.systems.nowcast.task.models.focus import Focus
from fewer.systems.nowcast.task.models.unet import UNet
from fewer.systems.nowcast.task.models.vivit import ViViT
from fewer.systems.nowcast.task.settings import Settings
from fewer.systems.nowcast.task.windows import COMPETITION, Geometry

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


def network(settings: Settings, size: int, geometry: Geometry = COMPETITION) -> Forecaster:
    """The model that the settings name, fresh."""
    if geometry != COMPETITION and settings.model not in _ANY_GEOMETRY:
        raise UserError(f"model {settings.model} for files of your own", f"one of {', '.join(_ANY_GEOMETRY)}")
    channels = len(geometry.bands) + settings.missing
    body = _body(settings, channels, size, geometry)
    if settings.checkpoint:
        for part in body.modules():
            if hasattr(part, "recompute"):
                setattr(part, "recompute", True)  # noqa: B010
    return Forecaster(body, missing=settings.missing, deltas=settings.deltas)


_ANY_GEOMETRY = ("drift", "baseline", "improved")  # the others are made for the competition's shapes


def _body(settings: Settings, channels: int, size: int, geometry: Geometry) -> nn.Module:
    width = settings.features
    if settings.model == "focus":
        return Focus(channels, size, width, dropout=0.1 if settings.dropout is None else settings.dropout)
    if settings.model == "drift":
        dropout = 0.1 if settings.dropout is None else settings.dropout
        return Drift(channels, size, width, dropout=dropout, geometry=geometry)
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
        geometry=geometry,
    )
