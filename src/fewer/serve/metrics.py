"""Counters in Prometheus' text format, shared by all worker processes.

Every series is known before the first request, so a worker's counters are a row of one block of shared memory: each
writes its own row, whoever is asked adds the rows up.
"""

from __future__ import annotations

import bisect
import mmap
import os
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

__all__ = ["Metrics", "Tally"]

AWAY = (400, 401, 408, 421, 431, 503)  # what is said before any task is asked
STATUSES = (200, 400, 401, 404, 405, 408, 413, 415, 421, 422, 500, 503, 504)
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Tally(Protocol):
    """A model's batches and samples so far, which only grow, and its samples that wait."""

    def __getitem__(self, index: int, /) -> float: ...

    def __setitem__(self, index: int, value: float, /) -> None: ...


class Metrics:
    """Requests by task and status, seconds by task, batches and samples, and how much waits."""

    def __init__(self, tasks: Sequence[str], models: Sequence[str], workers: int = 1) -> None:
        self.tasks, self.models, self.workers = list(tasks), list(models), workers
        series: list[tuple[str, ...]] = [("requests", task, str(s)) for task in tasks for s in STATUSES]
        series += [("seconds", task, str(edge)) for task in tasks for edge in (*SECONDS, "+Inf", "sum")]
        series += [(kind, model) for model in models for kind in ("batches", "samples", "waiting")]
        series += [("away", str(s)) for s in AWAY]
        self._place = {key: index for index, key in enumerate(series)}
        self._block = mmap.mmap(-1, 8 * max(len(series), 1) * workers)  # zeros; a fork shares it
        self._all = np.frombuffer(self._block, dtype=np.float64).reshape(workers, -1)
        self._own: Any = None
        self.be(0)

    def be(self, worker: int) -> None:
        """Count as this worker from now on."""
        width = self._all.shape[1]
        self._own = memoryview(self._block).cast("d")[worker * width : (worker + 1) * width]
        self._starts = {task: self._place[("seconds", task, str(SECONDS[0]))] for task in self.tasks}
        for model in self.models:
            self.tally(model)[2] = 0.0  # what waited for the worker that had this row before is gone with it

    def request(self, task: str, status: int, seconds: float) -> None:
        """One answer."""
        place = self._place.get(("requests", task, str(status)))
        if place is None:
            return
        own, start = self._own, self._starts[task]
        own[place] += 1
        own[start + bisect.bisect_left(SECONDS, seconds)] += 1
        own[start + len(SECONDS) + 1] += seconds

    def sent_away(self, status: int) -> None:
        """One request, or what was to become one, that reached no task."""
        self._own[self._place[("away", str(status))]] += 1

    def tally(self, model: str) -> Tally:
        """Where a model's queue writes how it stands, so that whichever worker is asked knows."""
        first = self._place[("batches", model)]
        own: Tally = self._own[first : first + 3]
        return own

    def text(self) -> str:
        """The exposition, version 0.0.4."""
        total = dict(zip(self._place, self._all.sum(axis=0).tolist()))
        lines = _head("fewer_requests_total", "counter", "Answers by task and status.")
        lines += [
            f'fewer_requests_total{{task="{key[1]}",status="{key[2]}"}} {value:.0f}'
            for key, value in total.items()
            if key[0] == "requests" and (value or key[2] == "200")
        ]
        lines += _head("fewer_sent_away_total", "counter", "Sent away before any task was asked, by status.")
        lines += [f'fewer_sent_away_total{{status="{s}"}} {total[("away", str(s))]:.0f}' for s in AWAY]
        lines += _head("fewer_request_seconds", "histogram", "From the request's head to its answer.")
        for task in self.tasks:
            lines += self._histogram(task, total)
        for kind, name, sentence in (
            ("batches", "fewer_batches_total", "Predictions made."),
            ("samples", "fewer_samples_total", "Samples predicted."),
            ("waiting", "fewer_waiting_samples", "Samples that wait for a model."),
        ):
            lines += _head(name, "gauge" if kind == "waiting" else "counter", sentence)
            lines += [f'{name}{{model="{model}"}} {total[(kind, model)]:.0f}' for model in self.models]
        lines += _head("process_resident_memory_bytes", "gauge", "Memory of the worker that answers.")
        lines.append(f"process_resident_memory_bytes {resident_bytes()}")
        return "\n".join(lines) + "\n"

    def _histogram(self, task: str, total: dict[tuple[str, ...], float]) -> Iterable[str]:
        below = 0.0
        for edge in (*map(str, SECONDS), "+Inf"):
            below += total[("seconds", task, edge)]
            yield f'fewer_request_seconds_bucket{{task="{task}",le="{edge}"}} {below:.0f}'
        yield f'fewer_request_seconds_sum{{task="{task}"}} {total[("seconds", task, "sum")]:.6f}'
        yield f'fewer_request_seconds_count{{task="{task}"}} {below:.0f}'


def _head(name: str, kind: str, sentence: str) -> list[str]:
    return [f"# HELP {name} {sentence}", f"# TYPE {name} {kind}"]


def resident_bytes() -> int:
    """Memory this process holds now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0
