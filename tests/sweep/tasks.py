"""Tasks that make a grid interesting: one whose process dies, one that only diverges, one that runs out of memory."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.task import Nets, Noise, Objective
from tests import toys


@dataclass(frozen=True)
class Settings:
    """Of every task here."""

    marker: str = ""  # a file that the first attempt leaves behind
    deaths: int = 1
    width: int = 8


class Mortal(toys.Blobs):
    """Kills its process with SIGKILL in the first attempts, then trains as any other."""

    Settings = Settings

    def __init__(self, settings: Settings = Settings()) -> None:  # noqa: B008
        super().__init__(settings.width)
        self.settings = settings

    def networks(self) -> dict[str, nn.Module]:
        if self.settings.marker:
            marker = Path(self.settings.marker)
            before = len(marker.read_text()) if marker.exists() else 0
            if before < self.settings.deaths:
                marker.write_text("x" * (before + 1))
                os.kill(os.getpid(), signal.SIGKILL)
        return super().networks()


class Hungry(Mortal):
    """Asks for more memory than there is."""

    def loss(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        return super().loss(nets, batch, noise) + torch.empty(1 << 55).sum()


class Unstackable(Mortal):
    """Reads a number out of a tensor, which no cohort can."""

    def objectives(self) -> tuple[Objective[Any], ...]:
        return (Objective(("net",), self.branching),)

    def branching(self, nets: Nets, batch: Any, noise: Noise) -> Tensor:
        loss = super().loss(nets, batch, noise)
        return loss * 2 if loss.item() > 1 else loss
