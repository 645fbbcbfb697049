"""What an offline algorithm is: named networks, what each of them minimises, and how its policy acts.

Algorithms see observations that the task has normalised and actions in -1 to 1; units are the task's affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fewer.core.task import Copy, Nets, Noise, Objective
from fewer.systems.control.task.logs.steps import Steps
from fewer.systems.control.task.settings import Settings

__all__ = ["Algorithm", "clipped_normal"]


@dataclass(frozen=True)
class Algorithm(ABC):
    """Holds the settings and the widths, no weights."""

    settings: Settings
    observations: int
    actions: int

    @abstractmethod
    def networks(self) -> dict[str, nn.Module]:
        """Fresh networks by name."""

    @abstractmethod
    def objectives(self) -> tuple[Objective[Steps], ...]:
        """In the order of one update."""

    @abstractmethod
    def act(self, nets: Nets, observation: Tensor, noise: Noise) -> Tensor:
        """(batch, actions), in -1 to 1."""

    def copies(self) -> dict[str, Copy]:
        """Target networks."""
        return {}

    def same_mask(self) -> dict[str, str]:
        """Twins."""
        return {}

    @property
    def latent(self) -> int:
        """Latent variables of the autoencoder."""
        return self.settings.latent or 2 * self.actions


def clipped_normal(noise: Noise, name: str, shape: tuple[int, ...], largest: float) -> Tensor:
    """Standard normal numbers, cut at plus and minus `largest`."""
    return torch.clamp(noise.normal(name, shape), -largest, largest)
