"""A batch's windows on several threads, one window each.

torch would split every copy between its threads and let them wait for each other after each; on a machine that has
other things to do most of the time goes into that waiting. A thread that fills whole windows by itself waits once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

__all__ = ["spread"]

_POOLS: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process, as threads do not survive a fork, and by count
_LOCK = threading.Lock()


def spread(work: Callable[[int], None], count: int) -> None:
    """`work(0)` to `work(count - 1)`, on as many threads as torch may use."""
    threads = min(torch.get_num_threads(), count)
    if threads < 2:
        for number in range(count):
            work(number)
        return
    for _ in _pool(torch.get_num_threads()).map(work, range(count)):
        pass


def _pool(threads: int) -> ThreadPoolExecutor:
    with _LOCK:
        key = os.getpid(), threads
        if key not in _POOLS:
            # a thread's own setting also becomes that of threads to come, so all are started and then it is put back
            pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
            started = threading.Barrier(threads + 1)
            for _ in range(threads):
                pool.submit(started.wait)
            started.wait()
            torch.set_num_threads(threads)
            _POOLS[key] = pool
        return _POOLS[key]
