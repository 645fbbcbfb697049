"""Single-phone selections a second through HTTP on loopback, server and client on the same processor.

The client keeps a schedule: a request is due at its time whether or not earlier ones were answered, and its latency
counts from then on, so a stall is not hidden by a client that waits with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from fewer.bench.row import Row

__all__ = ["Load", "run", "serving"]

RATE = 2000.0  # selections a second that are asked for
SLOWEST = 0.020  # seconds, 99th percentile that is asked for
CONNECTIONS = 16
PHONE = {"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}


def run(quick: bool = False) -> list[Row]:
    """The rate that is asked for, then as fast as 16 clients get answers."""
    seconds = 3.0 if quick else 10.0
    with serving(["cellfree-80"]) as server:
        load(server.port, rate=500.0, seconds=1.0)
        asked = load(server.port, rate=RATE, seconds=seconds)
        most = load(server.port, rate=None, seconds=seconds)
    slow, against = asked.percentile(99), "what is asked"
    return [
        Row(f"selections/s held of {RATE:g} asked for", asked.rate, RATE, "1/s", asked.rate / RATE, against, 1.0),
        Row("99th percentile at that rate", 1e3 * slow, 1e3 * SLOWEST, "ms", SLOWEST / slow, against, 1.0),
        Row("as fast as 16 clients get answers", most.rate, RATE, "1/s", most.rate / RATE, against, 1.0),
    ]


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

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)
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


def load(port: int, *, rate: float | None, seconds: float, connections: int = CONNECTIONS) -> Load:
    """Ask for single selections at a rate, or without one as soon as a connection is free."""
    body = json.dumps(PHONE).encode()
    head = b"POST /v1/cellfree/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    message = head + b"content-length: %d\r\n\r\n" % len(body) + body
    return asyncio.run(_load(port, message, rate, seconds, connections))


async def _load(port: int, message: bytes, rate: float | None, seconds: float, connections: int) -> Load:
    found, due, loop = Load(), deque[float](), asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: _Client(found, due, message), "127.0.0.1", port)
        for _ in range(connections)
    ]
    clients = [client for _, client in made]
    start = now = time.perf_counter()
    sent = 0
    while (now := time.perf_counter()) - start < seconds:
        if rate is None:
            due.extend([now] * sum(client.free for client in clients))
        else:
            due.extend(start + n / rate for n in range(sent, int((now - start) * rate)))
            sent = int((now - start) * rate)
        for client in clients:
            client.next()
        await asyncio.sleep(0.0005)
    due.clear()
    while not all(client.free for client in clients) and time.perf_counter() - start < seconds + 10:
        await asyncio.sleep(0.01)
    found.seconds = seconds
    for transport, _ in made:
        transport.close()
    return found


class _Client(asyncio.Protocol):
    """One keep-alive connection: the next due request as soon as the last is answered."""

    def __init__(self, found: Load, due: deque[float], message: bytes) -> None:
        self._found, self._due, self._message = found, due, message
        self._heard, self._since, self.free = b"", 0.0, True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

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
        self._found.latencies.append(time.perf_counter() - self._since)
        self.next()
