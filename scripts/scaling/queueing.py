"""A worker as a queue: it takes all that waits, at most so many, and is busy for a time per round and one per request.

`serve/queue.py` collects whatever arrived in one round of the event loop, so a busier worker makes fewer, larger
rounds, and each request costs it less. With rounds of one request and arrivals by chance this is M/D/1, whose mean
wait is known (tests/serve/test_scale.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Costs", "Queued", "arrivals", "fitted", "queued"]


@dataclass(frozen=True)
class Costs:
    """Seconds of processor time."""

    request: float
    round: float

    def of(self, together: float) -> float:
        """For one request among so many in a round."""
        return self.request + self.round / together


@dataclass(frozen=True)
class Queued:
    """What the model says."""

    busy: float  # share of the time
    together: float  # requests in a round, mean
    median: float  # seconds from arrival to the round's end
    slowest: float  # the same, 99th percentile
    mean_wait: float  # seconds until the round begins


def arrivals(rate: float, seconds: float, tick: float = 0.001) -> list[float]:
    """As `fewer.bench.load` sends them: what is due, once every tick."""
    due = np.arange(1, int(rate * seconds) + 1) / rate
    found: list[float] = (np.ceil(due / tick) * tick).tolist()
    return found


def queued(times: Sequence[float], costs: Costs, most: int = 256) -> Queued:
    """Every arrival through one worker."""
    first, free, rounds, busy = 0, 0.0, 0, 0.0
    taken, waits = [], []
    while first < len(times):
        begin = max(free, times[first])
        last = first
        while last < len(times) and times[last] <= begin and last - first < most:
            last += 1
        length = costs.round + costs.request * (last - first)
        free = begin + length
        taken += [free - at for at in times[first:last]]
        waits += [begin - at for at in times[first:last]]
        rounds, busy, first = rounds + 1, busy + length, last
    end = max(free, times[-1])
    return Queued(
        busy / end,
        len(times) / rounds,
        float(np.median(taken)),
        float(np.percentile(taken, 99)),
        float(np.mean(waits)),
    )


def fitted(seen: Sequence[tuple[float, float]]) -> Costs:
    """From processor seconds of a request at rounds of some mean size, two or more of them; neither below zero."""
    rows = np.array([[1.0, 1.0 / together] for _, together in seen])
    (request, each), *_ = np.linalg.lstsq(rows, np.array([seconds for seconds, _ in seen]), rcond=None)
    return Costs(max(float(request), 0.0), max(float(each), 0.0))
