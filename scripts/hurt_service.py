"""What hostile requests cost a server: memory beyond what it had, and how long `/healthz` waits meanwhile.

    python scripts/hurt_service.py [--times 100] [--only WORD] [--seconds 300]

Starts `fewer serve` on loopback, sends every attack so many times and meanwhile asks for health every few
milliseconds. Memory is the most that all processes of the service had, by the system's own count (Linux only). An
attack is a function of the server's port in `ATTACKS`: it sends its bytes, waits for what comes back and says what
that was. Exits with 1 where a bound was exceeded.
"""

from __future__ import annotations

import argparse
import functools
import http.client
import io
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fewer.bench.load import serving

MEMORY_MB = 64.0  # that an attack may add
HEALTH_MS = 50.0  # that /healthz may take
MODELS = ["cellfree-80", "control-hopper", "digits-3197", "nowcast-80"]
OPTIONS = ["--seconds", "5"]

Attack = Callable[[int], str]


def post(port: int, task: str, body: bytes, kind: str = "application/json", timeout: float = 60.0) -> str:
    """The status of one prediction."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", f"/v1/{task}/predict", body, {"content-type": kind})
        answer = connection.getresponse()
        answer.read()
        return str(answer.status)
    except OSError as error:
        return type(error).__name__
    finally:
        connection.close()


def npz(**arrays: Any) -> bytes:
    """An npz file of these arrays."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


@functools.cache
def _empty_images() -> bytes:
    return npz(satellite=np.zeros((1, 1, 0, 6000, 6000), "f4"))


def images_of_no_size(port: int) -> str:
    """A few bytes that claim 36 million pixels, none of them sent."""
    return post(port, "nowcast", _empty_images(), "application/x-npz")


@functools.cache
def _deep_lists() -> bytes:
    zeros = ",0" * 15_999
    return f'{{"satellite": [[[[0{zeros}]{zeros}]]]}}'.encode()


def lists_that_promise_a_square(port: int) -> str:
    """64 kB whose first items promise 16,000 x 16,000 numbers."""
    return post(port, "nowcast", _deep_lists())


@functools.cache
def _bomb() -> bytes:
    return npz(pixels=np.zeros((40_000, 28, 28), "u1"))


def images_that_unfold(port: int) -> str:
    """30 kB that unfold to 31 MB of bytes, 125 MB as the model wants them."""
    return post(port, "vision", _bomb(), "application/x-npz")


@functools.cache
def _many_parts() -> bytes:
    return b"PK\x01\x02" + b"PK\x01\x02".join([bytes(42)] * 170_000) + b"PK\x05\x06" + bytes(18)


def a_zip_of_many_parts(port: int) -> str:
    """A directory of 170,000 files, as large as a request may be."""
    return post(port, "vision", _many_parts(), "application/x-npz")


@functools.cache
def _phones(count: int) -> bytes:
    return json.dumps({"master": [3] * count, "rsrp_db": [[-80, -9, 0]] * count}, separators=(",", ":")).encode()


def phones_without_end(port: int) -> str:
    """350,000 phones in 5.6 MB."""
    return post(port, "cellfree", _phones(350_000))


def as_many_phones_as_are_allowed(port: int) -> str:
    """8192 phones, which are answered."""
    return post(port, "cellfree", _phones(8192))


@functools.cache
def _empty_lists() -> bytes:
    return b'{"pixels": [' + b"[]," * 2_700_000 + b"[]]}"


def lists_of_nothing(port: int) -> str:
    """Eight megabytes of empty lists: 64 bytes of memory for every three."""
    return post(port, "vision", _empty_lists())


@functools.cache
def _black_images() -> bytes:
    image = b"[" + b",".join([b"[" + b",".join([b"0"] * 28) + b"]"] * 28) + b"]"
    return b'{"pixels": [' + b",".join([image] * 5000) + b"]}"


def as_many_numbers_as_bytes_allow(port: int) -> str:
    """5000 images in 8 MB, two bytes a number: each takes four in the model's type. Answered, or told to be late."""
    return post(port, "vision", _black_images())


@functools.cache
def _blanks() -> bytes:
    return b'{"pixels":' + b" " * 8_000_000 + b"[]}"


def blanks_without_end(port: int) -> str:
    """Eight megabytes between a name and its value."""
    return post(port, "vision", _blanks())


@functools.cache
def _hour() -> bytes:
    images = np.random.default_rng(0).normal(size=(4, 11, 84, 84)).round(3)
    return json.dumps({"satellite": images.tolist()}, separators=(",", ":")).encode()


def an_hour_of_images_in_json(port: int) -> str:
    """An honest request that is long to read and long to write: 2 MB in, 4.5 MB out."""
    return post(port, "nowcast", _hour())


def a_page_asked_with_megabytes(port: int) -> str:
    """Eight megabytes to what the page of digits asks."""
    return post(port, "vision/attack?", _empty_lists())


ATTACKS: list[Attack] = [
    images_of_no_size,
    lists_that_promise_a_square,
    images_that_unfold,
    a_zip_of_many_parts,
    phones_without_end,
    as_many_phones_as_are_allowed,
    lists_of_nothing,
    as_many_numbers_as_bytes_allow,
    blanks_without_end,
    an_hour_of_images_in_json,
    a_page_asked_with_megabytes,
]


@dataclass
class Seen:
    """What one attack cost."""

    name: str
    statuses: Counter[str] = field(default_factory=Counter)
    megabytes: float = 0.0  # beyond before, the most that was seen
    waits: list[float] = field(default_factory=list)  # ms that /healthz took

    @property
    def good(self) -> bool:
        return self.megabytes <= MEMORY_MB and max(self.waits, default=0.0) <= HEALTH_MS

    def row(self) -> str:
        answers = ", ".join(f"{count} x {status}" for status, count in self.statuses.most_common())
        late = sum(wait > HEALTH_MS for wait in self.waits)
        most, usual = max(self.waits, default=0.0), float(np.median(self.waits or [0.0]))
        return (
            f"{self.name:36} {self.megabytes:8.1f} MB  healthz {usual:6.1f} ms median, {most:7.1f} most, "
            f"{late}/{len(self.waits)} late  {answers}"
        )


def family(pid: int) -> Iterator[int]:
    """A process and all that descend from it."""
    yield pid
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in file.read_text().split():
                yield from family(int(child))
        except OSError:
            continue


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
        Path(f"/proc/{each}/clear_refs").write_text("5")


def health(port: int) -> float:
    """Milliseconds until a new connection is told that all is well."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"ok"}'
    finally:
        connection.close()
    return 1e3 * (time.perf_counter() - start)


def _send(attack: Attack, port: int, times: int, until: float, told: Any) -> None:
    for _ in range(times):
        if time.time() > until:
            break
        told.send(attack(port))
    told.close()


def _still(server: serving, seconds: float) -> None:
    until = time.time() + seconds
    while time.time() < until:
        time.sleep(0.01)
        health(server.port)


def hurt(attack: Attack, server: serving, times: int, seconds: float) -> Seen:
    """Send it again and again from a process of its own, and look."""
    context = multiprocessing.get_context("fork")
    told, tells = context.Pipe(duplex=False)
    seen, before = Seen(attack.__name__), memory(server.process.pid)
    forget(server.process.pid)
    work = context.Process(target=_send, args=(attack, server.port, times, time.time() + seconds, tells))
    work.start()
    tells.close()
    while work.is_alive() or told.poll():
        seen.waits.append(health(server.port))
        try:
            while told.poll():
                seen.statuses[told.recv()] += 1
        except EOFError:
            break
        time.sleep(0.005)
    work.join()
    seen.megabytes = memory(server.process.pid, "VmHWM") - before
    return seen


def main() -> int:
    """All attacks, or those whose name holds a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=300.0, help="the longest that one attack is repeated")
    words = parser.parse_args()
    chosen = [attack for attack in ATTACKS if words.only in attack.__name__]
    with serving(MODELS, *OPTIONS) as server:
        for warm in (as_many_phones_as_are_allowed, an_hour_of_images_in_json):
            warm(server.port)
        _still(server, 1.0)
        found = []
        for attack in (at_rest, *chosen):
            found.append(hurt(attack, server, words.times, words.seconds))
            print(found[-1].row(), flush=True)
    return 0 if all(seen.good for seen in found[1:]) else 1


def at_rest(port: int) -> str:
    """No attack: what this machine does to an idle server."""
    time.sleep(0.02)
    return "nothing"


if __name__ == "__main__":
    sys.exit(main())
