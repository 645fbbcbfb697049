"""Units over processes of this machine. A process that dies takes its unit's turn with it, and nothing else."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from fewer.sweep.failure import Failure
from fewer.sweep.report import Done, Report, Step
from fewer.sweep.unit import Outcome, Unit

__all__ = ["work_here"]

_GRACE = 2.0  # seconds between asking a process to end and ending it


class _Worker:
    def __init__(self, out: Path, threads: int) -> None:
        limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        place = os.pathsep.join(sys.path)  # own tasks are found again
        with open(out / "workers.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fewer.sweep.executors.worker", str(out), str(threads)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env={**os.environ, **limits, "PYTHONPATH": place},
            )  # fmt: skip
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.unit: Unit | None = None
        self.ready, self.text = False, b""

    def give(self, unit: Unit) -> None:
        """A unit to run; a process that has just died is found out when it is read from."""
        self.unit = unit
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write((json.dumps(unit.to_json()) + "\n").encode())
            self.process.stdin.flush()

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """Whole lines since the last time, and whether the process still speaks."""
        assert self.process.stdout is not None
        chunk = self.process.stdout.read()
        if chunk is None:
            return [], True
        *lines, self.text = (self.text + chunk).split(b"\n")
        return [json.loads(line) for line in lines], chunk != b""

    def death(self) -> str:
        """How it ended."""
        code = self.process.wait()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def work_here(
    units: deque[Unit], out: Path, *, processes: int, threads: int = 1, retries: int = 2
) -> Generator[Report, None, None]:
    """Run units until there are none; the caller may add to `units` between reports."""
    tries: dict[str, int] = {}
    workers: list[_Worker] = []
    selector = selectors.DefaultSelector()
    try:
        while units or any(worker.unit is not None for worker in workers):
            busy = sum(worker.unit is not None or not worker.ready for worker in workers)
            while len(workers) < processes and len(workers) < busy + len(units):
                workers.append(_Worker(out, threads))
                selector.register(workers[-1].process.stdout, selectors.EVENT_READ, workers[-1])  # type: ignore[arg-type]
                busy += 1
            for worker in workers:
                if worker.ready and worker.unit is None and units:
                    worker.give(units.popleft())
            for key, _ in selector.select(1.0):
                worker = key.data
                lines, alive = worker.read()
                yield from _reports(worker, lines)
                if not alive:
                    selector.unregister(key.fileobj)
                    workers.remove(worker)
                    yield from _died(worker, units, tries, retries)
    finally:
        selector.close()
        _end(workers)


def _reports(worker: _Worker, lines: list[dict[str, Any]]) -> Iterator[Report]:
    for line in lines:
        if "ready" in line:
            worker.ready = True
        elif worker.unit is not None and "step" in line:
            yield Step(worker.unit, line["step"])
        elif worker.unit is not None:
            unit, worker.unit = worker.unit, None
            yield Done(unit, Outcome.from_json(line["outcome"]))


def _died(worker: _Worker, units: deque[Unit], tries: dict[str, int], retries: int) -> Iterator[Report]:
    how, unit = worker.death(), worker.unit
    worker.close()
    name = "" if unit is None else unit.name  # "": it never came to speak
    tries[name] = tries.get(name, 0) + 1
    if unit is None:
        if tries[name] > retries:
            raise RuntimeError(f"workers end before they begin ({how}); see workers.log")
    elif tries[name] <= retries:
        units.appendleft(unit)  # goes on from its last checkpoint
    else:
        why = f"the process ended by {how}, {tries[name]} times"
        failures = {point.name: Failure("worker died", why) for point in unit.points}
        yield Done(unit, Outcome({}, why) if len(unit.points) > 1 else Outcome(failures))


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    deadline = time.monotonic() + _GRACE
    for worker in workers:
        try:
            worker.process.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
        worker.close()
