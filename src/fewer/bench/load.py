"""A server under load on loopback: `fewer serve` in a process of its own, and a client on the same processor.

The client keeps a schedule: a request is due at its time whether or not earlier ones were answered, and its latency
counts from then on, so a stall is not hidden by a client that waits with it. Where there are two cores the server has
one and the client the other: each is then late by its own work alone.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CORES", "Load", "Machine", "apart", "family", "load", "serving", "still"]

CONNECTIONS = 16
_HANG_SECONDS = 600  # no answer by then: it never comes, however busy the machine
CORES = 2


def family(pid: int) -> Iterator[int]:
    """A process and all that descend from it, where the system says so."""
    yield pid
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in file.read_text().split():
                yield from family(int(child))
        except OSError:  # ended in the meantime
            continue


@contextmanager
def apart(server: serving) -> Iterator[None]:
    """The server on one core, this process on another, where the system can do that."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    if len(cores) < CORES:
        yield
        return
    for pid in family(server.process.pid):
        os.sched_setaffinity(pid, cores[:1])
    os.sched_setaffinity(0, cores[1:2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextmanager
def still() -> Iterator[None]:
    """No collection of garbage in the client: a pause of its own would count as the server's."""
    on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


@dataclass(frozen=True)
class Machine:
    """Seconds of processor time since the machine's start: all there were, idle ones, the host's, and ours."""

    whole: float
    idle: float
    stolen: float
    ours: float

    @classmethod
    def now(cls, server: serving) -> Machine:
        ours = server.processor_seconds() + time.process_time()
        try:
            words = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        except OSError:
            return cls(0.0, 0.0, 0.0, ours)
        tick = os.sysconf("SC_CLK_TCK")
        return cls(sum(words) / tick, (words[3] + words[4]) / tick, words[7] / tick, ours)

    def taken(self, later: Machine) -> tuple[float, float]:
        """Shares of the processor time between two looks that other processes had, and that the host took away."""
        whole, stolen = later.whole - self.whole, later.stolen - self.stolen
        others = whole - stolen - (later.idle - self.idle) - (later.ours - self.ours)
        return (max(others, 0.0) / whole, stolen / whole) if whole else (0.0, 0.0)


class serving:
    """`with serving(models) as server`: `fewer serve` in a process of its own, stopped at the end."""

    port: int

    def __init__(self, models: list[str], *options: str) -> None:
        self._words = [sys.executable, "-m", "fewer", "serve", *models, "--port", "0", "--json", *options]

    def __enter__(self) -> serving:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(self._words, stdout=subprocess.PIPE, env=environment, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server did not start: exit code {self.process.wait()}")
        self.url: str = json.loads(line)["url"]
        self.port = int(self.url.rsplit(":", 1)[1])
        return self

    def processor_seconds(self) -> float:
        """What the server's processes have worked since its start, by the system's count."""
        total = 0
        for pid in family(self.process.pid):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(words[11]) + int(words[12])
        return total / os.sysconf("SC_CLK_TCK")

    def _metrics(self) -> str:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=_HANG_SECONDS) as answer:
            told: str = answer.read().decode()
        return told

    def metric(self, series: str) -> float:
        """One number of what the server tells Prometheus."""
        lines = [line for line in self._metrics().splitlines() if line.startswith(f"{series} ")]
        return float(lines[0].rpartition(" ")[2])

    def answered(self, task: str, within: float) -> tuple[int, int]:
        """How many requests the server has answered within so many seconds of their head, and how many in all."""
        found = rf'fewer_request_duration_seconds_bucket\{{task="{task}",le="([^"]+)"\}} (\d+)'
        edges = dict(re.findall(found, self._metrics()))
        return int(edges[f"{within:g}"]), int(edges["+Inf"])

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(_HANG_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()


@dataclass
class Load:
    """What a client saw."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return self.statuses.get(200, 0) / self.seconds

    def percentile(self, q: float) -> float:
        """Seconds within which q percent were answered."""
        return float(np.percentile(self.latencies, q))


def load(
    port: int, path: str, content: Any, *, rate: float | None, seconds: float, connections: int = CONNECTIONS
) -> Load:
    """Send the same JSON at a rate, or without one as soon as a connection is free."""
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n".encode()
    message = head + b"content-length: %d\r\n\r\n" % len(body) + body
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        return runner.run(_load(port, message, rate, seconds, connections))


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop that the server has too, where it is installed: the client should cost little."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


async def _load(port: int, message: bytes, rate: float | None, seconds: float, connections: int) -> Load:
    found, due, loop = Load(), deque[float](), asyncio.get_running_loop()
    endless = {"on"} if rate is None else set[str]()
    made = [
        await loop.create_connection(lambda: _Client(found, due, message, endless), "127.0.0.1", port)
        for _ in range(connections)
    ]
    clients = [client for _, client in made]
    start = now = time.perf_counter()
    sent = 0
    while (now := time.perf_counter()) - start < seconds:
        if rate is None:  # who is answered asks again by itself
            due.extend([now] * sum(client.free for client in clients))
        else:
            due.extend(start + n / rate for n in range(sent, int((now - start) * rate)))
            sent = int((now - start) * rate)
        for client in clients:
            client.next()
        await asyncio.sleep(0.001 if rate is not None else 0.1)
    endless.clear()
    if rate is not None:  # what was due and could not even be asked has waited at least until now
        found.latencies += [now - since for since in due]
    due.clear()
    while not all(client.free for client in clients) and time.perf_counter() - start < seconds + 10:
        await asyncio.sleep(0.01)
    found.seconds = seconds
    for transport, _ in made:
        transport.close()
    return found


class _Client(asyncio.Protocol):
    """One keep-alive connection: the next due request as soon as the last is answered."""

    def __init__(self, found: Load, due: deque[float], message: bytes, endless: set[str]) -> None:
        self._found, self._due, self._message, self._endless = found, due, message, endless
        self._heard, self._since, self.free = b"", 0.0, True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport  # uvloop's own kind, which is no asyncio.Transport

    def next(self) -> None:
        """Send what is due."""
        if self.free and self._due:
            self.free, self._since = False, self._due.popleft()
            self._transport.write(self._message)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, found, body = self._heard.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self._heard, self.free = b"", True
        status = int(head[9:12])
        self._found.statuses[status] = self._found.statuses.get(status, 0) + 1
        now = time.perf_counter()
        self._found.latencies.append(now - self._since)
        if self._endless:
            self._due.append(now)
        self.next()
