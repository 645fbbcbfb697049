"""Workers that are killed: one after the other, each when it has worked long enough to be replaced at once."""

from __future__ import annotations

import os
import signal
import time

from fewer.bench.load import family, serving
from hurting.connections import MODELS, predicted
from hurting.measure import SECONDS

__all__ = ["ATTACKS", "MODELS", "OPTIONS", "WARM"]

WORKERS = 16
PACE = 0.68  # seconds from one kill to the next: whoever is killed has worked for eleven seconds, and needs no pause
OPTIONS = ["--workers", str(WORKERS)]


def a_worker_killed(server: serving) -> str:
    """The eldest of them; another takes its place, and an honest request is answered."""
    start = time.monotonic()
    before = list(family(server.process.pid))
    os.kill(before[1], signal.SIGKILL)
    while before[1] in (now := list(family(server.process.pid))) or len(now) < len(before):
        if time.monotonic() - start > SECONDS:
            return "no worker came back"
        time.sleep(0.02)
    answer = predicted(server)
    time.sleep(max(0.0, PACE - (time.monotonic() - start)))
    return answer


ATTACKS = [a_worker_killed]
WARM = [predicted] * 200
