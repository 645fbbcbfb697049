"""Workers come back, unless they cannot even start; none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from fewer.bench.load import serving
from tests.serve.sockets import connected
from tests.waiting import GIVE_UP_SECONDS, until

CHILDREN = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="who a process's children are is not told")


def children(server: serving) -> list[int]:
    pid = server.process.pid
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def health(server: serving) -> int:
    with urllib.request.urlopen(f"{server.url}/healthz", timeout=GIVE_UP_SECONDS) as answer:
        return int(answer.status)


@CHILDREN
def test_a_worker_that_is_killed_is_started_anew_and_the_service_goes_on(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(["cellfree-80"], "--workers", "2") as server:
        until(lambda: len(children(server)) == 2)
        assert health(server) == 200
        killed, other = children(server)
        os.kill(killed, signal.SIGKILL)
        assert health(server) == 200
        until(lambda: len(children(server)) == 2 and killed not in children(server))
        assert other in children(server) and health(server) == 200
        server.process.terminate()
        assert server.process.wait(GIVE_UP_SECONDS) == 0
    assert capfd.readouterr().err == "worker 0 ended by signal 9; it is started anew\n"


@CHILDREN
def test_workers_whose_parent_is_killed_end_too() -> None:
    with serving(["cellfree-80"], "--workers", "2") as server:
        until(lambda: len(children(server)) == 2)
        assert health(server) == 200
        server.process.kill()
        server.process.wait(GIVE_UP_SECONDS)

        def silent() -> bool:
            try:
                connected(server.port).close()
            except ConnectionRefusedError:
                return True
            return False

        until(silent)


def ran(work: str) -> subprocess.CompletedProcess[str]:
    """Two workers that do this, as a program of its own."""
    code = f"""
import asyncio, mmap, os, signal, time
from fewer.serve.processes import slot, workers

starts = mmap.mmap(-1, 1)
slot.PAUSE = 0.0

def work(worker, alive):
    workers.obey(signal.SIG_DFL)
    if worker == 1:
        time.sleep(600)
    starts[0] += 1
{work}

try:
    workers.Workers(2, work).run()
except workers.UserError as error:
    print(error)
print(starts[0])
"""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=GIVE_UP_SECONDS, check=False
    )


def test_a_worker_that_dies_at_every_start_ends_the_service_with_an_error() -> None:
    done = ran("    os._exit(7)")
    assert done.returncode == 0
    assert "3 workers in a row that ended while they started" in done.stdout and done.stdout.endswith("\n3\n")
    assert done.stderr == "worker 0 ended with exit code 7; it is started anew\n" * 2


def test_a_worker_that_dies_at_its_work_is_started_as_often_as_it_takes() -> None:
    done = ran(
        "    asyncio.run(alive())\n"
        "    os.kill(os.getppid() if starts[0] == 20 else os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(600)"
    )
    assert (done.returncode, done.stdout) == (0, "20\n")
    assert done.stderr == "worker 0 ended by signal 15; it is started anew\n" * 19


def test_what_earlier_workers_did_is_let_go_of_when_others_have_taken_over() -> None:
    code = """
import asyncio, gc, os, signal, threading, time, weakref
from fewer.serve.processes import workers

alive_works = weakref.WeakValueDictionary()

class Doing:
    def __init__(self, name):
        self.circle, self.name = self, name  # as an application has
        alive_works[name] = self

    def __call__(self, worker, alive):
        workers.obey(signal.SIG_DFL)
        gc.collect()
        os.write(1, f"{self.name} knows {' '.join(alive_works)}\\n".encode())
        asyncio.run(alive())
        time.sleep(600)

def renewed():
    return Doing("second")

def trouble():
    while "first" in alive_works:
        if "second" not in alive_works:
            os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)

group = workers.Workers(1, Doing("first"), renewed=renewed)
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP, signal.SIGTERM))  # the thread's: only the main one hears
threading.Thread(target=trouble, daemon=True).start()
group.run()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=GIVE_UP_SECONDS, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = set(done.stdout.splitlines())  # who of two processes is heard first is chance, and the first may end before
    assert "second knows second" in said and said <= {"first knows first", "second knows second"}
