"""One run: clients, kills and reloads, and what came of it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import urllib.request
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from enduring.clients import KINDS, MODELS, SECONDS, Client, Kind, Seen
from fewer.bench.load import family, serving

__all__ = ["Endured", "Plan", "endured"]


@dataclass(frozen=True)
class Plan:
    """How long, and what is done meanwhile."""

    seconds: float = 600.0
    kill: float = 20.0
    reload: float = 30.0
    workers: int = 2
    terminate: bool = False
    models: tuple[str, ...] = MODELS

    def kinds(self) -> list[Kind]:
        """Requests that these models answer."""
        return [kind for kind in KINDS if kind.model in self.models]


@dataclass
class Endured:
    """What the clients saw, and what was done to the service."""

    plan: Plan
    seen: dict[str, Seen]
    lost: list[str] = field(default_factory=list)
    kills: int = 0
    reloads: int = 0
    counted: dict[str, float] = field(default_factory=dict)  # by the service itself
    megabytes: tuple[float, float] = (0.0, 0.0)  # of all processes after the first seconds and at the end

    @property
    def good(self) -> bool:
        """Whether nothing was lost or wrong, and no reload failed; several at once count as one."""
        unexpected = sum((seen.unexpected for seen in self.seen.values()), Counter[str]())
        refused = sum(seen.refused for seen in self.seen.values()) * (not self.plan.terminate)
        reloaded = (self.counted["good"] > 0) == (self.reloads > 0) and not self.counted["failed"]
        return not self.lost and not unexpected and not refused and reloaded

    def lines(self) -> list[str]:
        """One for each kind of request."""
        found = []
        for name, seen in self.seen.items():
            times = np.percentile(seen.seconds or [0.0], [50, 99, 100]) * 1e3
            found.append(
                f"{name:20} {seen.answered:7d} answered  {times[0]:7.1f} ms median {times[1]:7.1f} p99 "
                f"{times[2]:8.1f} most  {sum(seen.ended.values())} ended with a killed worker "
                f"{dict(seen.ended) or ''} {dict(seen.unexpected) or ''}"
            )
        return found

    def summary(self) -> dict[str, Any]:
        """All kinds together."""
        times = [second for seen in self.seen.values() for second in seen.seconds]
        return {
            "seconds": self.plan.seconds,
            "answered": sum(seen.answered for seen in self.seen.values()),
            "kills": self.kills,
            "reloads": self.reloads,
            "counted": self.counted,
            "lost": self.lost[:20],
            "ended_with_a_killed_worker": sum(sum(seen.ended.values()) for seen in self.seen.values()),
            "could_not_connect": sum(seen.refused for seen in self.seen.values()),
            "p50_ms": round(1e3 * float(np.percentile(times, 50)), 2),
            "p99_ms": round(1e3 * float(np.percentile(times, 99)), 2),
            "megabytes": [round(each) for each in self.megabytes],
            "load": os.getloadavg()[0],
        }


class _Trouble(threading.Thread):
    """Kills and reloads at their times."""

    def __init__(self, server: serving, plan: Plan, done: threading.Event) -> None:
        super().__init__(daemon=True)
        self._server, self._plan, self._done = server, plan, done
        self.kills = self.reloads = 0
        self._last_kill = -np.inf

    def killed(self, since: float) -> int:
        """The number of the last kill after this moment, from 1; 0 if there was none."""
        return self.kills if since <= self._last_kill else 0

    def run(self) -> None:
        """Until the end."""
        start, chance = time.monotonic(), random.Random(0)
        while not self._done.wait(0.05):
            past = time.monotonic() - start
            if self._plan.kill and past >= (self.kills + 1) * self._plan.kill:
                workers = list(family(self._server.process.pid))[1:]
                self.kills, self._last_kill = self.kills + 1, np.inf  # now, until it is done
                with suppress(ProcessLookupError):  # ended by itself
                    for pid in chance.sample(workers, min(1, len(workers))):
                        os.kill(pid, signal.SIGKILL)
                self._last_kill = time.monotonic()
            if self._plan.reload and past >= (self.reloads + 1) * self._plan.reload:
                self.reloads += 1
                self._server.process.send_signal(signal.SIGHUP)


def endured(plan: Plan) -> Endured:
    """Start the service, let everything happen, stop it."""
    done, found = threading.Event(), Endured(plan, {kind.name: Seen() for kind in plan.kinds()})
    with serving(list(plan.models), "--workers", str(plan.workers)) as server:
        trouble = _Trouble(server, plan, done)
        clients = [Client(k, server.port, found.seen[k.name], done.is_set, trouble.killed) for k in plan.kinds()]
        for thread in (*clients, trouble):
            thread.start()
        time.sleep(min(10.0, plan.seconds / 3))
        before = _megabytes(server.process.pid)
        time.sleep(plan.seconds - min(10.0, plan.seconds / 3))
        found.megabytes = before, _megabytes(server.process.pid)
        found.counted = _counted(server, reloads=min(trouble.reloads, 1))
        if plan.terminate:
            server.process.terminate()
            server.process.wait(SECONDS)
        done.set()
        for thread in (*clients, trouble):
            thread.join(SECONDS)
    found.lost = [each for client in clients for each in client.lost]
    found.kills, found.reloads = trouble.kills, trouble.reloads
    return found


def _counted(server: serving, reloads: int) -> dict[str, float]:
    """What the service tells, once it has counted so many reloads: the first may still be going on."""
    end = time.monotonic() + SECONDS
    while True:
        with urllib.request.urlopen(f"{server.url}/metrics", timeout=SECONDS) as answer:
            lines = answer.read().decode().splitlines()
        told = [line.split() for line in lines if line.startswith(("fewer_reloads_total", "fewer_worker_starts_total"))]
        found = {name.partition('"')[2].rstrip('"}') or "starts": float(value) for name, value in told}
        if found["good"] + found["failed"] >= reloads or time.monotonic() > end:
            return found
        time.sleep(0.1)


def _megabytes(pid: int) -> float:
    """Memory of the whole service, what processes share counted once."""
    total = 0
    for each in family(pid):
        try:
            words = Path(f"/proc/{each}/smaps_rollup").read_text().partition("Pss:")[2].split()
        except OSError:
            continue
        total += int(words[0]) if words else 0
    return total / 1024
