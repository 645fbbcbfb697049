"""What an attack costs a server: memory beyond what it had, and how long `/healthz` waits meanwhile (Linux only)."""

from __future__ import annotations

import http.client
import multiprocessing
import statistics
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fewer.bench.load import family, serving

MEMORY_MB = 64.0  # that an attack may add
HEALTH_MS = 50.0  # that /healthz may take
SECONDS = 60.0  # that a client waits for anything
PHONE = b'{"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}'

Attack = Callable[[serving], str]  # sends its bytes, waits for what comes back and says what that was


@dataclass
class Seen:
    """What one attack cost."""

    name: str
    statuses: Counter[str] = field(default_factory=Counter)
    megabytes: float = 0.0  # beyond before, the most that was seen
    waits: list[float] = field(default_factory=list)  # ms that /healthz took
    aside: list[float] = field(default_factory=list)  # the same of a server that nobody hurts, at the same moments
    ordinary: list[float] = field(default_factory=list)  # ms that an ordinary request took meanwhile
    unlike: Counter[str] = field(default_factory=Counter)  # answers to ordinary requests that should not have been
    took: list[float] = field(default_factory=list)  # ms until the attack itself was answered, or its connection closed
    lost: int = 0  # questions for health that were not answered: a worker was killed, or had to make room

    @property
    def good(self) -> bool:
        return self.megabytes <= MEMORY_MB and max(self.waits, default=0.0) <= HEALTH_MS

    def row(self) -> str:
        answers = ", ".join(f"{count} x {status}" for status, count in self.statuses.most_common())
        late = sum(wait > HEALTH_MS for wait in self.waits)
        most, usual = max(self.waits, default=0.0), statistics.median(self.waits or [0.0])
        beside = sum(wait > HEALTH_MS for wait in self.aside)
        return (
            f"{self.name:36} {self.megabytes:8.1f} MB  healthz {usual:6.1f} ms median, {most:7.1f} most, "
            f"{late}/{len(self.waits)} late, {self.lost} lost (unhurt {max(self.aside, default=0.0):.1f} most, "
            f"{beside} late)  a phone {np.median(self.ordinary or [0]):6.1f} median, "
            f"{np.percentile(self.ordinary or [0], 99):7.1f} p99 {dict(self.unlike) or ''}  {answers} "
            f"in {np.median(self.took or [0]):.1f} ms median, {max(self.took, default=0.0):.1f} most"
        )


def memory(pid: int, line: str = "VmRSS") -> float:
    """Resident megabytes of the whole service; with VmHWM the most since `forget`."""
    total = 0
    for each in family(pid):
        try:
            words = Path(f"/proc/{each}/status").read_text().partition(f"{line}:")[2].split()
        except OSError:
            continue
        total += int(words[0]) if words else 0  # kB; none of a process that is ending
    return total / 1024


def forget(pid: int) -> None:
    """Let the system count the most memory anew."""
    for each in family(pid):
        with suppress(OSError):  # one that is ending
            Path(f"/proc/{each}/clear_refs").write_text("5")


def health(port: int) -> float:
    """Milliseconds until a new connection is told that all is well."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        if answer.read() != b'{"status":"ok"}':
            raise http.client.HTTPException(f"health is answered with {answer.status}")
    finally:
        connection.close()
    return 1e3 * (time.perf_counter() - start)


def ordinary(seen: Seen, port: int) -> None:
    """One phone, as everybody asks."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("POST", "/v1/cellfree/predict", PHONE, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        seen.unlike.update([str(answer.status)] if answer.status != 200 else [])
        seen.ordinary.append(1e3 * (time.perf_counter() - start))
    finally:
        connection.close()


def _send(attack: Attack, server: serving, times: int, until: float, told: Any) -> None:
    for _ in range(times):
        if time.time() > until:
            break
        start = time.perf_counter()
        answer = attack(server)
        told.send((answer, 1e3 * (time.perf_counter() - start)))
    told.close()


def still(server: serving, seconds: float) -> None:
    """Ask for health alone, until what came before is over."""
    until = time.time() + seconds
    while time.time() < until:
        time.sleep(0.01)
        health(server.port)


def hurt(attack: Attack, server: serving, unhurt: serving, times: int, seconds: float) -> Seen:
    """Send it again and again from a process of its own, and look; `unhurt` tells what the machine alone does."""
    context = multiprocessing.get_context("fork")
    told, tells = context.Pipe(duplex=False)
    seen, before = Seen(attack.__name__), memory(server.process.pid)
    forget(server.process.pid)
    work = context.Process(target=_send, args=(attack, server, times, time.time() + seconds, tells))
    work.start()
    tells.close()
    while work.is_alive() or told.poll():
        seen.aside.append(health(unhurt.port))
        try:
            seen.waits.append(health(server.port))
            ordinary(seen, server.port)
        except (ConnectionError, http.client.HTTPException):
            seen.lost += 1
        try:
            while told.poll():
                answer, milliseconds = told.recv()
                seen.statuses[answer] += 1
                seen.took.append(milliseconds)
        except EOFError:
            break
        seen.megabytes = max(seen.megabytes, memory(server.process.pid, "VmHWM") - before)
        time.sleep(0.005)
    work.join()
    seen.megabytes = max(seen.megabytes, memory(server.process.pid, "VmHWM") - before)
    return seen


def at_rest(server: serving) -> str:
    """No attack: what this machine does to an idle server."""
    time.sleep(0.02)
    return "nothing"
