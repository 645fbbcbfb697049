"""Waiting for somebody else: a time-out only gives up on a hang, however busy the machine is, and decides nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["GIVE_UP_SECONDS", "answers_of", "until"]

GIVE_UP_SECONDS = 600.0
Found = TypeVar("Found")


def until(asked: Callable[[], Found]) -> Found:
    """Ask again and again until there is something; what was found."""
    end = time.monotonic() + GIVE_UP_SECONDS
    while not (found := asked()):
        assert time.monotonic() < end, f"nothing within {GIVE_UP_SECONDS:g} s"
        time.sleep(0.02)
    return found


def answers_of(queue: Any, workers: list[Any]) -> list[Any]:
    """What each of the started processes puts into the queue, once all have ended."""
    found = [queue.get(timeout=GIVE_UP_SECONDS) for _ in workers]
    for worker in workers:
        worker.join(GIVE_UP_SECONDS)
        assert worker.exitcode == 0
    return found
