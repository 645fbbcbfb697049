"""A smooth steady wind without convergence, and where the air of each place was at another time.

Fields are drawn in the frame that moves with the air and each frame is mapped once through the whole displacement, so
no diffusion of repeated interpolation builds up.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import torch
from torch import Tensor

from fewer.systems.nowcast.task.weather.fields import STEP_HOURS
from fewer.systems.nowcast.task.weather.regimes import Scene

__all__ = ["Wind", "sample_periodic"]

_MODES = 10
_WAVELENGTHS_KM = (900.0, 2500.0)
_ROUGHNESS = (6.0, 0.15)  # deviation from the mean wind: km/h, and share of its speed


class Wind:
    """Velocity in km/h at any place: a mean and waves of a stream function, so that rain is moved, never squeezed."""

    def __init__(self, scenes: Sequence[Scene], device: torch.device) -> None:
        rows = [_modes(scene) for scene in scenes]
        self.mean = torch.tensor([row[0] for row in rows], device=device)  # (scenes, 2): eastward, southward
        self.modes = torch.tensor([row[1] for row in rows], device=device)  # (scenes, modes, 4): k_x, k_y, phase, size

    def at(self, places: Tensor) -> Tensor:
        """(scenes, n, 2) velocities at (scenes, n, 2) places in km."""
        wave, phase, size = self.modes[..., :2], self.modes[..., 2], self.modes[..., 3]
        angle = places @ wave.transpose(1, 2) + phase[:, None]
        across = torch.stack([-wave[..., 1], wave[..., 0]], dim=-1) / wave.norm(dim=-1, keepdim=True)
        return torch.baddbmm(self.mean[:, None], angle.cos() * size[:, None], across)

    def origins(self, places: Tensor, *, frames: int) -> list[Tensor]:
        """Per frame, where the air now at `places` is in the frame of the middle time.

        Counting from the middle halves how far the shear can pull the field apart.
        """
        middle = frames // 2
        found = [places] * frames
        for frame in range(middle + 1, frames):
            found[frame] = found[frame - 1] - STEP_HOURS * self.at(found[frame - 1])
        for frame in range(middle - 1, -1, -1):
            found[frame] = found[frame + 1] + STEP_HOURS * self.at(found[frame + 1])
        return found


def _modes(scene: Scene) -> tuple[list[float], list[list[float]]]:
    dice = random.Random(scene.seed ^ 0x57494E44)
    mean = [scene.speed_kmh * math.cos(scene.heading), -scene.speed_kmh * math.sin(scene.heading)]
    rough = _ROUGHNESS[0] + _ROUGHNESS[1] * scene.speed_kmh
    modes = []
    for _ in range(_MODES):
        k = 2 * math.pi / dice.uniform(*_WAVELENGTHS_KM)
        angle, phase = dice.uniform(0, 2 * math.pi), dice.uniform(0, 2 * math.pi)
        size = rough * dice.gauss(0, 1) / math.sqrt(_MODES / 2)
        modes.append([k * math.cos(angle), k * math.sin(angle), phase, size])
    return mean, modes


def sample_periodic(field: Tensor, places: Tensor, pixel_km: float) -> Tensor:
    """(batch, channels, height, width) of a periodic field at (batch, height, width, 2) places in km, bicubic.

    Pixel i of the field is centred at i pixels; x runs across, y down.
    """
    pixels, margin = field.shape[-1], 3
    padded = torch.nn.functional.pad(field, (margin, margin, margin, margin), mode="circular")
    index = torch.remainder(places / pixel_km, pixels) + margin
    normal = (2 * index + 1) / (pixels + 2 * margin) - 1  # grid_sample without aligned corners
    return torch.nn.functional.grid_sample(padded, normal, mode="bicubic", align_corners=False)
