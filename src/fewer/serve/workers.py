"""Processes that share the work: one that ends is started anew, and all end together."""

from __future__ import annotations

import logging
import math
import mmap
import multiprocessing.connection
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fewer.core.errors import UserError

__all__ = ["STOP", "Workers", "obey"]

STOP = (signal.SIGINT, signal.SIGTERM)
_TRIES = 3  # workers in a row that may end before they work
_PAUSE = 0.5  # seconds from one start of a worker to the next
_log = logging.getLogger("fewer.serve")

Alive = Callable[[], Awaitable[None]]


class Workers:
    """`work(number, alive)` in so many processes; each awaits `alive()` once it works, and now and then after that."""

    def __init__(self, count: int, work: Callable[[int, Alive], None]) -> None:
        # forked, so that models lie in memory once and counters are shared
        self._context: Any = multiprocessing.get_context("fork")
        self._work, self._parent = work, os.getpid()
        self._parts: list[Any] = [None] * count
        self._works = mmap.mmap(-1, count)  # a byte for each, which it sets itself; a fork shares it
        self._since = [-math.inf] * count
        self._stopped = False

    def run(self) -> None:
        """Until told to stop; if workers cannot even start, an error."""
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP)  # until somebody is there who knows what to stop
        for worker in range(len(self._parts)):
            self._start(worker)
        obey(self._stop)
        failed = 0
        while not self._stopped and failed < _TRIES:
            multiprocessing.connection.wait([part.sentinel for part in self._parts])
            for worker, part in enumerate(self._parts):
                if self._stopped or failed == _TRIES or part.is_alive():
                    continue
                failed = 0 if self._works[worker] else failed + 1
                if failed < _TRIES:
                    self._again(worker)
        if failed == _TRIES:
            self._stop(0, None)
        for part in self._parts:
            part.join()
        if failed == _TRIES:
            given = f"{failed} workers in a row that ended while they started"
            raise UserError(given, "workers that stay", "see their last lines above")

    def _start(self, worker: int) -> None:
        self._works[worker], self._since[worker] = 0, time.monotonic()
        self._parts[worker] = self._context.Process(target=self._work, args=(worker, self._alive(worker)))
        self._parts[worker].start()

    def _again(self, worker: int) -> None:
        code = self._parts[worker].exitcode
        ending = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        _log.warning("worker %d ended %s; it is started anew", worker, ending)
        time.sleep(max(0.0, self._since[worker] + _PAUSE - time.monotonic()))
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
        if not self._stopped:
            self._start(worker)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)

    def _alive(self, worker: int) -> Alive:
        async def alive() -> None:
            self._works[worker] = 1
            if os.getppid() != self._parent:  # killed: nobody is left who could stop this worker
                signal.raise_signal(signal.SIGTERM)

        return alive

    def _stop(self, number: int, _: Any) -> None:
        self._stopped = True
        for part in self._parts:
            if part.is_alive():
                part.terminate()


def obey(stop: Callable[[int, Any], None]) -> None:
    """Call it when told to stop, from now on."""
    for number in STOP:
        signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)
