"""What hostile connections cost a server: memory beyond what it had, and how long `/healthz` waits meanwhile.

    python scripts/hurt_connections.py [--times 100] [--only WORD]

Starts `fewer serve` with two workers on loopback, makes every attack so many times and meanwhile asks for health every
few milliseconds; then kills workers. An attack is a function of host and port in `ATTACKS` that says what came back.
Memory is that of all processes of the service, by the system's own count (Linux only). Exits with 1 where a bound was
exceeded.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fewer.bench.load import serving

MEMORY_MB = 64.0  # that an attack may add
HEALTH_MS = 50.0  # that /healthz may take
SECONDS = 60.0  # that a client waits for anything
CROWD = 600  # connections, more than a worker keeps open
ASK = b"POST /v1/cellfree/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
PHONE = b'{"master": 21, "rsrp_db": [-113.8, -131.9, -124.9]}'

Attack = Callable[[str, int], str]


def sent(host: str, port: int, first: bytes, again: bytes = b"", times: int = 0) -> str:
    """What a connection hears that sends these bytes, until the server has enough of it."""
    with socket.create_connection((host, port), timeout=SECONDS) as client:
        try:
            client.sendall(first)
            for _ in range(times):
                client.sendall(again)
            return client.recv(1 << 16)[9:12].decode() or "closed"
        except ConnectionError:
            return "closed"


def a_long_header(host: str, port: int) -> str:
    """100 MB in one header."""
    return sent(host, port, b"GET / HTTP/1.1\r\nx: ", bytes([97]) * (1 << 20), 100)


def many_headers(host: str, port: int) -> str:
    """100 MB in headers of six bytes."""
    return sent(host, port, b"GET / HTTP/1.1\r\n", b"x: y\r\n" * (1 << 17), 133)


def headers_after_a_body(host: str, port: int) -> str:
    """100 MB in a trailer of a body in chunks."""
    start = ASK + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: "
    return sent(host, port, start, bytes([97]) * (1 << 20), 100)


def a_path_without_end(host: str, port: int) -> str:
    """100 MB of path."""
    return sent(host, port, b"GET /", bytes([97]) * (1 << 20), 100)


def requests_without_waiting(host: str, port: int) -> str:
    """100,000 requests at once."""
    return sent(host, port, b"", b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000, 100)


def a_body_nobody_wants(host: str, port: int) -> str:
    """100 MB after the answer to a request."""
    return sent(
        host, port, b"PUT /v1/cellfree/predict HTTP/1.1\r\ncontent-length: 104857600\r\n\r\n", bytes(1 << 20), 100
    )


def chunks_of_one_byte(host: str, port: int) -> str:
    """As large a body as is taken, a byte at a time."""
    return sent(host, port, ASK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n" * (1 << 17), 64)


def other_names(host: str, port: int) -> str:
    """A page from elsewhere whose name was made to lead here."""
    return sent(host, port, b"GET /v1/models HTTP/1.1\r\nhost: example.org\r\nconnection: close\r\n\r\n")


@contextmanager
def crowd(host: str, port: int, count: int, message: bytes) -> Iterator[None]:
    """So many connections that send this and stay."""
    with ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(socket.create_connection((host, port), timeout=SECONDS))
            try:
                client.sendall(message)
            except ConnectionError:
                continue  # had to make room
        yield


def predicted(host: str, port: int) -> str:
    """The status of an honest request."""
    return sent(host, port, ASK + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(PHONE) + PHONE)


def silent_connections(host: str, port: int) -> str:
    """A crowd that says nothing."""
    with crowd(host, port, CROWD, b""):
        return predicted(host, port)


def half_headers(host: str, port: int) -> str:
    """A crowd that does not finish its headers."""
    with crowd(host, port, CROWD, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: y"):
        return predicted(host, port)


def half_bodies(host: str, port: int) -> str:
    """A crowd that claims eight megabytes each and sends two bytes."""
    with crowd(host, port, CROWD, ASK + b"content-length: 8388608\r\n\r\n{}"):
        return predicted(host, port)


def claims(host: str, port: int) -> str:
    """Eight such."""
    with crowd(host, port, 8, ASK + b"content-length: 8388608\r\n\r\n{}"):
        return predicted(host, port)


def answers_nobody_reads(host: str, port: int) -> str:
    """32 that ask sixteen times for the longest page, and do not read it."""
    with crowd(host, port, 32, b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 16):
        return predicted(host, port)


ATTACKS: list[tuple[str, Attack]] = [
    (attack.__name__, attack)
    for attack in (
        a_long_header,
        many_headers,
        headers_after_a_body,
        a_path_without_end,
        requests_without_waiting,
        a_body_nobody_wants,
        chunks_of_one_byte,
        other_names,
        silent_connections,
        half_headers,
        half_bodies,
        claims,
        answers_nobody_reads,
    )
]


def family(pid: int) -> list[int]:
    """A process and its workers."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def megabytes(pid: int) -> float:
    """Resident memory of all of them; none of one that is ending."""
    total = 0
    for each in family(pid):
        try:
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
    return total / (1 << 20)


def health(port: int) -> float:
    """Milliseconds until a new connection is told that all is well."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"ok"}'
    finally:
        connection.close()
    return 1e3 * (time.perf_counter() - start)


def hurt(name: str, server: serving, work: Callable[[], Counter[str]]) -> bool:
    """Do it in a process of its own, and look; whether both bounds held."""
    context = multiprocessing.get_context("fork")
    told, tells = context.Pipe(duplex=False)
    process = context.Process(target=lambda: tells.send(work()))
    before, most, waits, lost = megabytes(server.process.pid), 0.0, [], 0
    process.start()
    while process.is_alive():
        try:
            waits.append(health(server.port))
        except (ConnectionError, http.client.HTTPException):
            lost += 1  # its worker was killed, or it had to make room
        most = max(most, megabytes(server.process.pid) - before)
        time.sleep(0.01)
    answers = ", ".join(f"{count} x {status}" for status, count in told.recv().most_common())
    late = sum(wait > HEALTH_MS for wait in waits)
    usual, longest = statistics.median(waits), max(waits)
    print(
        f"{name:26} {most:7.1f} MB  healthz {usual:5.1f} ms median, {longest:6.1f} most, {late}/{len(waits)} late, "
        f"{lost} lost  {answers}",
        flush=True,
    )
    return most <= MEMORY_MB and longest <= HEALTH_MS


def killed(server: serving, times: int) -> Counter[str]:
    """Kill a worker, wait for the next, and so on."""
    answers: Counter[str] = Counter()
    for _ in range(times):
        worker = family(server.process.pid)[1]
        os.kill(worker, signal.SIGKILL)
        until = time.monotonic() + SECONDS
        while worker in (now := family(server.process.pid)) or len(now) < 3:
            assert time.monotonic() < until, "no worker came back"
            time.sleep(0.05)
        time.sleep(1.0)  # until it listens
        answers[predicted("127.0.0.1", server.port)] += 1
    return answers


def main() -> int:
    """All attacks, or those whose name holds a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--only", default="")
    words = parser.parse_args()

    def rest(host: str, port: int) -> str:
        time.sleep(0.02)
        return "nothing"

    good = []
    with serving(["cellfree-80", "digits-3197"], "--workers", "2") as server:
        for _ in range(100):  # let both workers settle
            health(server.port)
            predicted("127.0.0.1", server.port)
        for name, attack in [("(at rest)", rest), *ATTACKS]:
            if words.only in name:
                good.append(
                    hurt(
                        name, server, lambda a=attack: Counter(a("127.0.0.1", server.port) for _ in range(words.times))
                    )
                )
        if words.only in "workers_killed":
            good.append(hurt("workers_killed", server, lambda: killed(server, min(words.times, 20))))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
