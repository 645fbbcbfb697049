"""Episodes within transitions: where each begins and ends, what it returned, and a choice of steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewer.systems.control.task.logs.transitions import Transitions

__all__ = ["Episodes", "episodes", "take"]


class Episodes(NamedTuple):
    """One row an episode, in the order they were taken."""

    start: NDArray[np.int64]  # its first step
    length: NDArray[np.int64]
    total: NDArray[np.float64]  # the sum of its rewards


def episodes(steps: Transitions) -> Episodes:
    """Those that end at a terminal or a time-out, and a last one that the data cut off."""
    ends = np.flatnonzero(steps.terminal | steps.timeout)
    if len(steps.reward) and (not len(ends) or ends[-1] != len(steps.reward) - 1):
        ends = np.append(ends, len(steps.reward) - 1)
    start = np.concatenate([np.zeros(min(len(ends), 1), dtype=np.int64), ends[:-1] + 1])
    total = np.add.reduceat(steps.reward.astype(np.float64), start) if len(start) else np.zeros(0)
    return Episodes(start, ends - start + 1, total)


def take(steps: Transitions, rows: NDArray[Any] | slice) -> Transitions:
    """These steps, by index, mask or slice."""
    return Transitions(
        steps.observation[rows], steps.action[rows], steps.reward[rows],
        steps.next_observation[rows], steps.terminal[rows], steps.timeout[rows],
    )  # fmt: skip
