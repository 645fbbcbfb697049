"""Several threads for one prediction: samples are shared out where each of them is computed by itself.

A pack is given a number of threads, one if nothing is said. All packs of a process share them; they are started when
they are first needed and wait between predictions, so that there are never more than the largest number asked for. A
prediction that finds them at work for another computes by itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.runtime.ops import Array

__all__ = ["ALONE", "Threads"]

_WORTH = 1_000_000  # multiplications of a share, below which handing it over costs more than it saves
_MOST = 64

Answers = tuple[Array, ...]
_pool: list[ThreadPoolExecutor] = []  # one, once it was needed
_busy = threading.Lock()


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _busy
    _pool.clear()
    _busy = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@dataclass(frozen=True)
class Threads:
    """As many threads as `count`, the caller's among them."""

    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.count <= _MOST:
            raise UserError(f"{self.count} threads", f"1 to {_MOST}")

    def shared(self, call: Callable[..., Answers], inputs: tuple[Array, ...], work: float) -> Answers:
        """The answers of `call` for all samples, each of which takes `work` multiplications."""
        samples = len(inputs[0])
        parts = min(self.count, samples, int(samples * work / _WORTH))
        if parts < 2 or not _busy.acquire(blocking=False):
            return call(*inputs)
        try:
            return self._apart(call, inputs, parts)
        finally:
            _busy.release()

    def _apart(self, call: Callable[..., Answers], inputs: tuple[Array, ...], parts: int) -> Answers:
        edges = [len(inputs[0]) * part // parts for part in range(parts + 1)]
        shares = [[x[edges[i] : edges[i + 1]] for x in inputs] for i in range(parts)]
        if not _pool:
            _pool.append(ThreadPoolExecutor(_MOST, thread_name_prefix="fewer-pack"))
        others: list[Future[Answers]] = [_pool[0].submit(call, *share) for share in shares[1:]]
        found = [call(*shares[0]), *(other.result() for other in others)]
        return tuple(np.concatenate(same) for same in zip(*found))


ALONE = Threads()
