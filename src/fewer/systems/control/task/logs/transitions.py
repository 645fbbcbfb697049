"""Logged experience: what every reader returns and every algorithm learns from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Transitions"]

Floats = NDArray[np.float32]


class Transitions(NamedTuple):
    """Steps in the order they were taken; an episode ends at a terminal or a time-out."""

    observation: Floats  # (steps, observations)
    action: Floats  # (steps, actions)
    reward: Floats  # (steps,)
    next_observation: Floats  # (steps, observations); true even where the episode was cut off
    terminal: NDArray[np.bool_]  # (steps,); the world ended: no value beyond
    timeout: NDArray[np.bool_]  # (steps,); the clock ended it: there is value beyond
