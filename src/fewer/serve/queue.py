"""What waits for one model: single requests are collected and predicted together, and the wait is bounded.

A batch that is surely short is predicted in the event loop itself: handing it to a thread would cost more than it.
Longer ones go to a thread, so that the server goes on listening; meanwhile the next batch collects.
"""

from __future__ import annotations

import asyncio
import functools
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.file.tensors import Array
from fewer.serve.fields import Deadline
from fewer.serve.limits import Limits, Refusal
from fewer.serve.models import Model
from fewer.serve.observe.metrics import ModelMetrics

__all__ = ["Queue", "timed"]

_LENGTHS = 1024  # of sequences, for which is remembered how many are predicted at once
_SHORT = 0.002  # seconds that the event loop may be kept busy by one batch


@dataclass(eq=False)
class _Waiting:
    given: Sequence[Any]  # arrays with samples in front, or the plain numbers of one sample
    samples: int  # 0: a row
    answer: asyncio.Future[Any]
    deadline: Deadline
    steps: int  # of its sequences; 0: those that shapes speak of
    weight: int  # samples of the usual length that it counts for
    since: float  # on the clock of time.monotonic


class Queue:
    """Waiting requests of one model; made and used inside one event loop."""

    def __init__(self, model: Model, limits: Limits, seconds: Callable[[int], float], metrics: ModelMetrics) -> None:
        self._model, self._limits, self._seconds = model, limits, seconds
        self._waiting: deque[_Waiting] = deque()
        self._running: list[_Waiting] = []
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="predict")
        self._planned = self._watching = False
        # a window of satellite images is a hundred thousand phones: bytes bound what waits as well as samples do
        each = sum(math.prod(item.shape) * np.dtype(item.dtype).itemsize for item in model.inputs)
        self._most_waiting = max(1, min(limits.queue_samples, limits.queue_bytes // max(each, 1)))
        self._most_together = max(1, min(limits.batch_samples, limits.batch_bytes // max(each, 1)))
        self._sequences = _Sequences(model, limits.sequence_bytes, self._most_together)
        self.samples = 0  # that wait now, in samples of the usual length
        self._metrics = metrics

    def put(self, arrays: Sequence[Array], deadline: Deadline) -> asyncio.Future[Array]:
        """A place in the queue, or 503; a request larger than the whole queue is taken when nothing else waits."""
        return self._put(arrays, len(arrays[0]), deadline, self._sequences.steps(arrays))

    def most_together(self, arrays: Sequence[Array]) -> int:
        """How many samples such as these are predicted at once; 413 where one alone would take too much memory."""
        steps = self._sequences.steps(arrays)
        most = self._sequences.most(steps)
        if not most:
            raise Refusal(413, f"sequences of {steps} steps, of which one takes more than the server has for it")
        return most

    def put_row(self, row: Sequence[Any], deadline: Deadline) -> asyncio.Future[Any]:
        """The same for one sample of plain numbers; so is its answer. Arrays are made for a whole batch only."""
        return self._put(row, 0, deadline)

    def _put(self, given: Sequence[Any], samples: int, deadline: Deadline, steps: int = 0) -> asyncio.Future[Any]:
        count = (samples or 1) * self._sequences.weight(steps)
        if self.samples and self.samples + count > self._most_waiting:
            raise Refusal(503, f"{self.samples} samples wait already; come back in a second")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append(_Waiting(given, samples, future, deadline, steps, count, time.monotonic()))
        self.samples += count
        self._metrics.waiting(self.samples)
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
        samples = weight = 0
        while self._waiting and (not batch or self._joins(batch[0], self._waiting[0], samples)):
            item = self._waiting.popleft()
            self.samples -= item.weight
            if not item.answer.done():  # given up on, or its client has gone
                batch.append(item)
                samples, weight = samples + (item.samples or 1), weight + item.weight
        self._metrics.waiting(self.samples)
        if not batch:
            return
        now = time.monotonic()
        self._metrics.batch(samples, [now - item.since for item in batch])
        if self._seconds(weight) * self._sequences.weight(batch[0].steps) <= _SHORT:
            _deliver(batch, self._answers(batch))
            self._plan()
            return
        self._running = batch
        self._loop.run_in_executor(self._thread, self._answers, batch).add_done_callback(self._end)

    def _joins(self, first: _Waiting, item: _Waiting, samples: int) -> bool:
        """Whether it is predicted with so many that came first: sequences have to be of one length."""
        return item.steps == first.steps and samples + item.samples < self._sequences.most(first.steps)

    def _end(self, work: asyncio.Future[list[Any]]) -> None:
        batch, self._running = self._running, []
        error = work.exception()
        _deliver(batch, work.result() if error is None else [error] * len(batch))
        self._plan()

    def _answers(self, batch: Sequence[_Waiting]) -> list[Any]:
        """One prediction for all; if it is refused, one for each, so that a bad request harms nobody else."""
        try:
            return self._predicted(batch)
        except UserError as error:
            return [error] if len(batch) == 1 else [self._answers([item])[0] for item in batch]
        except Exception as error:
            return [error] * len(batch)

    def _predicted(self, batch: Sequence[_Waiting]) -> list[Any]:
        rows = [item.given for item in batch if not item.samples]
        whole = [item.given for item in batch if item.samples]
        if rows:
            whole.insert(0, [np.array(v, dtype=i.dtype) for v, i in zip(zip(*rows), self._model.inputs)])
        output = self._model.predict(whole[0] if len(whole) == 1 else [np.concatenate(parts) for parts in zip(*whole)])
        plain = iter(output[: len(rows)].tolist())
        answers, first = [], len(rows)
        for item in batch:
            answers.append(output[first : first + item.samples] if item.samples else next(plain))
            first += item.samples
        return answers

    def _watch(self) -> None:
        """Tell those who have waited too long; what runs cannot be stopped, but nobody need wait for it."""
        now = time.monotonic()
        for item in (*self._running, *self._waiting):
            if item.deadline.until <= now and not item.answer.done():
                item.answer.set_exception(item.deadline.refusal())
        self._watching = bool(self._running or self._waiting)
        if self._watching:
            self._loop.call_later(min(1.0, self._limits.seconds), self._watch)

    def close(self) -> None:
        """Wait for what runs."""
        self._thread.shutdown()


class _Sequences:
    """What the length of sequences means for one model: a long one weighs as much as several of the usual length."""

    def __init__(self, model: Model, most_bytes: int, most: int) -> None:
        self._time = model.time
        self._place = [item.name in self._time.inputs for item in model.inputs].index(True) if self._time else 0
        self._usual = model.inputs[self._place].shape[0] if self._time else 0

        @functools.lru_cache(_LENGTHS)
        def within(steps: int) -> int:
            return model.samples_within(steps, most_bytes, most) if steps else most

        self.most = within  # samples of so many steps that are predicted at once

    def steps(self, arrays: Sequence[Array]) -> int:
        """Of these; 0 where shapes are fixed."""
        return arrays[self._place].shape[1] if self._time else 0

    def weight(self, steps: int) -> int:
        """Samples of the usual length that one counts for."""
        return max(1, -(-steps // self._usual)) if steps else 1


def _deliver(batch: list[_Waiting], answers: Sequence[Any]) -> None:
    for item, answer in zip(batch, answers):
        if item.answer.done():
            continue
        if isinstance(answer, BaseException):
            item.answer.set_exception(answer)
        else:
            item.answer.set_result(answer)


def timed(model: Model, most: int) -> Callable[[int], float]:
    """Seconds that a batch of n samples takes here, from one of 1 and one of 32, the best of three tries each.

    A model that is too slow for the event loop with one sample is not asked for more: a start should not take minutes.
    """

    def best(samples: int) -> float:
        arrays, found = model.blank(samples), []
        for _ in range(3):
            start = time.perf_counter()
            model.predict(arrays)
            found.append(time.perf_counter() - start)
        return min(found)

    one = best(1)
    if one > _SHORT:
        return lambda samples: one * samples
    slope = max(best(min(32, most)) - one, 0.0) / 31
    return lambda samples: one + slope * samples
