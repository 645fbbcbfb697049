"""Episodes within transitions: where each begins and ends, what it returned, and a choice of steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewer.systems.control.task.logs.transitions import Transitions

__all__ = ["Episodes", "episodes", "return_span", "take"]

_LONG = 1000  # steps; of a longer episode only so many count


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


def return_span(steps: Transitions) -> float:
    """From the worst return to the best, 0 among them: episodes that all went alike still span what they brought.

    >>> nothing, never = np.zeros((4, 1), np.float32), np.zeros(4, bool)
    >>> ends = np.array([False, True, False, True])
    >>> return_span(Transitions(nothing, nothing, np.array([3, 4, 5, 4], np.float32), nothing, ends, never))
    9.0
    """
    own = episodes(steps)
    total = own.total * np.minimum(1.0, _LONG / own.length)
    return float(max(total.max(initial=0.0), 0.0) - min(total.min(initial=0.0), 0.0))


def take(steps: Transitions, rows: NDArray[Any] | slice) -> Transitions:
    """These steps, by index, mask or slice."""
    return Transitions(
        steps.observation[rows], steps.action[rows], steps.reward[rows],
        steps.next_observation[rows], steps.terminal[rows], steps.timeout[rows],
    )  # fmt: skip
