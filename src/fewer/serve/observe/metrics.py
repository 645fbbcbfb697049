"""Counters, gauges and histograms of all worker processes, in memory that they share.

Every series is known before the first request, so a worker's figures are a row of one block: each writes its own row,
whoever is asked adds the rows up. The last row is that of the process which starts them.
"""

from __future__ import annotations

import bisect
import mmap
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fewer.serve.observe.process import open_files, resident_bytes

__all__ = ["AWAY", "BATCH", "SECONDS", "STATUSES", "Histogram", "Metrics", "ModelMetrics", "Series"]

AWAY = (400, 401, 408, 421, 429, 431, 503)  # what is said before any task is asked
STATUSES = (200, 400, 401, 404, 405, 408, 413, 415, 421, 422, 500, 503, 504)
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BATCH = tuple(float(1 << n) for n in range(9))  # samples predicted together
GAUGES = ("waiting", "resident", "files")  # what is gone with the process that told it
_REMEMBERED = 3  # generations of workers before these whose last requests may still be running
Series = tuple[str, ...]  # a kind and its labels' values


class Histogram:
    """Its cells of a row: how many values lie up to each edge and not the one before, those beyond, and their sum."""

    def __init__(self, cells: Any, edges: Sequence[float]) -> None:
        self._cells, self._edges = cells, edges

    def add(self, value: float) -> None:
        """One value."""
        self._cells[bisect.bisect_left(self._edges, value)] += 1.0
        self._cells[-1] += value


class ModelMetrics:
    """What a model's queue tells: batches, how long their requests had waited, and how many samples wait now."""

    def __init__(self, waits: Histogram, batches: Histogram, waiting: Any) -> None:
        self._waits, self._batches, self._waiting = waits, batches, waiting

    def batch(self, samples: int, waits: Sequence[float]) -> None:
        """One prediction of so many samples, whose requests waited so many seconds each."""
        self._batches.add(samples)
        for seconds in waits:
            self._waits.add(seconds)

    def waiting(self, samples: int) -> None:
        """So many now."""
        self._waiting[0] = samples


class Metrics:
    """Requests by task and status, seconds by task, waits and batches by model, and how the processes stand."""

    def __init__(
        self,
        tasks: Sequence[str],
        models: Sequence[str],
        workers: int = 1,
        *,
        facts: Mapping[Series, Mapping[str, str]] | None = None,
    ) -> None:
        self.tasks, self.models, self.workers = list(tasks), list(models), workers
        self.facts = facts or {}  # what is 1 for ever, with its labels
        self.started = time.time()
        series: list[Series] = [("requests", task, str(s)) for task in tasks for s in STATUSES]
        series += [("seconds", task, edge) for task in tasks for edge in cells(SECONDS)]
        series += [("queue", model, edge) for model in models for edge in cells(SECONDS)]
        series += [("batch", model, edge) for model in models for edge in cells(BATCH)]
        series += [("waiting", model) for model in models]
        series += [("away", str(s)) for s in AWAY]
        series += [("processor",), ("resident",), ("files",), ("starts",), ("reloads", "good"), ("reloads", "failed")]
        self._place = {key: index for index, key in enumerate(series)}
        self._block = mmap.mmap(-1, 8 * len(series) * (workers + 1))  # zeros; a fork shares it
        self._all = np.frombuffer(self._block, dtype=np.float64).reshape(workers + 1, -1)
        self._earlier: list[Metrics] = []
        self._carried: dict[Series, float] = {}
        self._own: Any = None
        self.be(0)

    def be(self, worker: int) -> None:
        """Count as this worker from now on."""
        self.worker, width = worker, self._all.shape[1]
        self._own = memoryview(self._block).cast("d")[worker * width : (worker + 1) * width]
        self._seconds = {task: self._histogram(("seconds", task), SECONDS) for task in self.tasks}
        self._before = self._own[self._place[("processor",)]] - time.process_time()
        self.gone(worker)

    def gone(self, worker: int) -> None:
        """What waited for the worker that had this row is gone with it."""
        for key, place in self._place.items():
            if key[0] in GAUGES:
                self._all[worker, place] = 0.0

    def follow(self, earlier: Metrics) -> None:
        """Go on where another generation of workers stands, which may still answer for a while."""
        known = [earlier, *earlier._earlier]
        self._earlier, done = known[:_REMEMBERED], known[_REMEMBERED:]
        self._carried = dict(earlier._carried)
        for one in done:
            for key, value in one._counted().items():
                self._carried[key] = self._carried.get(key, 0.0) + value
        self.started = earlier.started

    def _histogram(self, key: Series, edges: Sequence[float]) -> Histogram:
        first = self._place[(*key, cells(edges)[0])]
        return Histogram(self._own[first : first + len(edges) + 2], edges)

    def request(self, task: str, status: int, seconds: float) -> None:
        """One answer."""
        place = self._place.get(("requests", task, str(status)))
        if place is not None:
            self._own[place] += 1.0
            self._seconds[task].add(seconds)

    def sent_away(self, status: int) -> None:
        """One request, or what was to become one, that reached no task."""
        self._own[self._place[("away", str(status))]] += 1.0

    def count(self, *key: str) -> None:
        """One more of what the process that starts workers does, in its own row."""
        self._all[self.workers, self._place[key]] += 1.0

    def model(self, name: str) -> ModelMetrics:
        """Where a model's queue writes how it stands, so that whichever worker is asked knows."""
        waiting = self._place[("waiting", name)]
        waits, batches = self._histogram(("queue", name), SECONDS), self._histogram(("batch", name), BATCH)
        return ModelMetrics(waits, batches, self._own[waiting : waiting + 1])

    def look(self) -> None:
        """Write down how this process stands."""
        own, place = self._own, self._place
        own[place[("processor",)]] = self._before + time.process_time()
        own[place[("resident",)]], own[place[("files",)]] = resident_bytes(), open_files()

    def _counted(self) -> dict[Series, float]:
        return {k: v for k, v in zip(self._place, self._all.sum(axis=0).tolist()) if k[0] not in GAUGES}

    def total(self) -> dict[Series, float]:
        """Every series over all workers, and those of earlier generations."""
        found = dict(zip(self._place, self._all.sum(axis=0).tolist()))
        for part in (self._carried, *(one._counted() for one in self._earlier)):
            for key, value in part.items():
                if key in found:
                    found[key] += value
        return found


def cells(edges: Sequence[float]) -> list[str]:
    """What a histogram's cells are called."""
    return [*(f"{edge:g}" for edge in edges), "+Inf", "sum"]
