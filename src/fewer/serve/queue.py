"""What waits for one model: single requests are collected and predicted together, and the wait is bounded.

A batch that is surely short is predicted in the event loop itself: handing it to a thread would cost more than it.
Longer ones go to a thread, so that the server goes on listening; meanwhile the next batch collects.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from fewer.core.errors import UserError
from fewer.serve.limits import Limits, Refusal
from fewer.sparse.tensors import Array

__all__ = ["Queue"]

_SHORT = 0.002  # seconds that the event loop may be kept busy by one batch

Predict = Callable[[Sequence[Array]], Array]


@dataclass(eq=False)
class _Waiting:
    arrays: Sequence[Array]
    samples: int
    answer: asyncio.Future[Array]
    until: float  # on the loop's clock


class Queue:
    """Waiting requests of one model; made and used inside one event loop."""

    def __init__(self, predict: Predict, limits: Limits, *, seconds_per_batch: Callable[[int], float]) -> None:
        self._predict, self._limits, self._seconds = predict, limits, seconds_per_batch
        self._waiting: deque[_Waiting] = deque()
        self._running: list[_Waiting] = []
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="predict")
        self._planned = self._watching = False
        self.samples = 0  # that wait now
        self.batches = self.predicted = 0  # since the start

    def put(self, arrays: Sequence[Array], samples: int) -> asyncio.Future[Array]:
        """A place in the queue, or 503; a request larger than the whole queue is taken when nothing else waits."""
        if self.samples and self.samples + samples > self._limits.queue_samples:
            raise Refusal(503, f"{self.samples} samples wait already; come back in a second")
        future: asyncio.Future[Array] = self._loop.create_future()
        self._waiting.append(_Waiting(arrays, samples, future, self._loop.time() + self._limits.seconds))
        self.samples += samples
        self._plan()
        if not self._watching:
            self._watching = True
            self._loop.call_later(min(1.0, self._limits.seconds), self._watch)
        return future

    def _plan(self) -> None:
        # at the end of this round of the loop: everything that arrived in it shares one prediction
        if not self._planned and not self._running and self._waiting:
            self._planned = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._planned = False
        batch: list[_Waiting] = []
        samples = 0
        while self._waiting and (not batch or samples + self._waiting[0].samples <= self._limits.batch_samples):
            item = self._waiting.popleft()
            self.samples -= item.samples
            if not item.answer.done():  # given up on, or its client has gone
                batch.append(item)
                samples += item.samples
        if not batch:
            return
        self.batches, self.predicted = self.batches + 1, self.predicted + samples
        if self._seconds(samples) <= _SHORT:
            _deliver(batch, self._answers([item.arrays for item in batch]))
            self._plan()
            return
        self._running = batch
        work = self._loop.run_in_executor(self._thread, self._answers, [item.arrays for item in batch])
        work.add_done_callback(self._end)

    def _end(self, work: asyncio.Future[list[Array | Exception]]) -> None:
        batch, self._running = self._running, []
        error = work.exception()
        _deliver(batch, [error] * len(batch) if isinstance(error, Exception) else work.result())
        self._plan()

    def _answers(self, requests: list[Sequence[Array]]) -> list[Array | Exception]:
        """One prediction for all; if it is refused, one for each, so that a bad request harms nobody else."""
        try:
            if len(requests) == 1:
                return [self._predict(requests[0])]
            together = [np.concatenate(parts) for parts in zip(*requests)]
            ends = np.cumsum([len(request[0]) for request in requests])[:-1]
            return list(np.split(self._predict(together), ends))
        except UserError as error:
            if len(requests) == 1:
                return [error]
            return [self._answers([request])[0] for request in requests]
        except Exception as error:
            return [error] * len(requests)

    def _watch(self) -> None:
        """Tell those who have waited too long; what runs cannot be stopped, but nobody need wait for it."""
        now = self._loop.time()
        for item in (*self._running, *self._waiting):
            if item.until <= now and not item.answer.done():
                item.answer.set_exception(Refusal(504, f"no answer within {self._limits.seconds:g} s"))
        self._watching = bool(self._running or self._waiting)
        if self._watching:
            self._loop.call_later(min(1.0, self._limits.seconds), self._watch)

    def close(self) -> None:
        """Wait for what runs."""
        self._thread.shutdown()


def _deliver(batch: list[_Waiting], answers: Sequence[Array | BaseException]) -> None:
    for item, answer in zip(batch, answers):
        if item.answer.done():
            continue
        if isinstance(answer, BaseException):
            item.answer.set_exception(answer)
        else:
            item.answer.set_result(answer)


def timed(predict: Predict, blank: Callable[[int], Sequence[Array]], most: int) -> Callable[[int], float]:
    """Seconds that a batch of n samples takes here, from one of 1 and one of 32, the best of three tries each."""

    def best(samples: int) -> float:
        arrays, found = blank(samples), []
        for _ in range(3):
            start = time.perf_counter()
            predict(arrays)
            found.append(time.perf_counter() - start)
        return min(found)

    one, many = best(1), best(min(32, most))
    slope = max(many - one, 0.0) / 31
    return lambda samples: one + slope * samples
