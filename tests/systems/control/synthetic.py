"""Logs that nobody had to simulate: smooth observations, actions that depend on them, episodes of twenty steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.settings import Settings
from fewer.systems.control.task.task import Control

SMALL: dict[str, Any] = {"hidden": (32, 24), "autoencoder_hidden": (40, 40), "episodes": 2, "horizon": 10}


def logs(steps: int = 400, widths: tuple[int, int] = (11, 3), *, seed: int = 0, spread: float = 1.0) -> Transitions:
    """`spread` multiplies the observations, as raw sensors do."""
    lot = np.random.default_rng(seed)
    observation = lot.normal(size=(steps + 1, widths[0]))
    weights = lot.normal(size=widths) / widths[0] ** 0.5
    action = np.tanh(observation[:-1] @ weights + 0.1 * lot.normal(size=(steps, widths[1])))
    reward = np.tanh(observation[:-1, 0]) - 0.1 * np.square(action).sum(1)
    last = np.arange(1, steps + 1) % 20 == 0
    return Transitions(
        (spread * observation[:-1]).astype(np.float32),
        action.astype(np.float32),
        reward.astype(np.float32),
        (spread * observation[1:]).astype(np.float32),
        last & (np.arange(steps) % 40 < 20),
        last & (np.arange(steps) % 40 >= 20),
    )


def control(algorithm: str = "bcq", **changes: Any) -> Control:
    """A small task on such logs."""
    return Control(Settings(algorithm=algorithm, **{**SMALL, **changes}), logs=logs())
