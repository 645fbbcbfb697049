"""What was not measured: pixels far from any radar, a radar under repair, lines that the satellite lost."""

from __future__ import annotations

import random

from torch import Tensor

from fewer.systems.nowcast.task.weather.ground import RADARS, covered, nearest_radar
from fewer.systems.nowcast.task.weather.regimes import Scene

__all__ = ["Gaps"]

_REPAIRS = 0.06  # share of windows in which some radar is silent for a while
_LOST = 0.03  # share of windows in which an image has lost lines


class Gaps:
    """One scene's, by frame; `images` of its `frames` are seen by the satellite, from the first on."""

    def __init__(self, scene: Scene, *, size: int, frames: int, images: int) -> None:
        dice = random.Random(scene.seed ^ 0x47415053)  # a stream of its own
        self._covered, self._which = covered(scene.region, size), nearest_radar(scene.region, size)[1]
        first = dice.randrange(frames)
        self._repair = range(first, first + dice.randint(1, frames)) if dice.random() < _REPAIRS else range(0)
        self._silent = dice.randrange(RADARS)
        self._lossy = dice.randrange(max(images, 1)) if dice.random() < _LOST else -1
        line = dice.randrange(size)
        self._lines = slice(line, line + dice.randint(1, max(1, size // 4)))

    def valid(self, frame: int) -> Tensor:
        """(size, size), True where a radar looked."""
        return self._covered & (self._which != self._silent) if frame in self._repair else self._covered

    def lines(self, image: int) -> slice:
        """Rows of that image that are missing; mostly none."""
        return self._lines if image == self._lossy else slice(0, 0)
