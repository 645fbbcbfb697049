"""Ends, failing calls, memory and two writers: each returns how many were tried, and how many went as they should."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import sys
from pathlib import Path

from scripts.release.injected.moments import Fault, Moments, end, fail
from scripts.release.injected.training import (
    ENDED,
    REFUSED,
    begun,
    different,
    ended,
    forked,
    reference,
    train,
)  # fmt: skip

__all__ = ["crash_points", "failing_calls", "little_memory", "small_files", "two_writers"]

Counted = tuple[int, int]
MEGABYTE = 1 << 20


def _moments(variant: str, folder: Path, steps: int) -> int:
    """How many there are in a training of its own, alone in a folder."""
    tally, out = folder / "tally", folder / "counted"

    def work() -> None:
        moments = Moments(end)
        moments.inject()
        train(variant, out, steps)
        os.write(os.open(tally, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), str(moments.count).encode())

    if forked(work) != 0:
        raise SystemExit("the training whose moments were counted failed")
    shutil.rmtree(out)
    return int(tally.read_text())


def _goes_on(variant: str, folder: Path, out: Path, steps: int, what: str) -> bool:
    """Whether the same command ends with the bits of a training that nothing happened to, and nothing is left over."""
    code = forked(lambda: train(variant, out, steps))
    wrong = different(reference(variant, folder, steps), out) if code == 0 else [f"it ends with {code}"]
    if wrong:
        print(f"{variant}, {what}: {', '.join(wrong)}", file=sys.stderr, flush=True)
    shutil.rmtree(out, ignore_errors=True)
    return not wrong


def _injected(variant: str, out: Path, steps: int, moments: Moments) -> int:
    def work() -> None:
        moments.inject()
        train(variant, out, steps)

    return forked(work)


def crash_points(variant: str, folder: Path, steps: int, most: int) -> Counted:
    """Ended at up to `most` moments, evenly spaced, and started again."""
    moments, tried, same = _moments(variant, folder, steps), 0, 0
    for at in range(moments)[:: max(1, -(-moments // most))]:
        out = folder / "run"
        code = _injected(variant, out, steps, Moments(end, at))
        tried += 1
        same += code == ENDED and _goes_on(variant, folder, out, steps, f"ended at moment {at} of {moments}")
        if code != ENDED:
            print(f"{variant}: moment {at} of {moments} ended with {code}", file=sys.stderr, flush=True)
    return tried, same


def failing_calls(variant: str, folder: Path, steps: int, most: int) -> Counted:
    """The disk fails from a moment on, as one that is full, not to be written or broken; then it is well again."""
    moments, tried, same = _moments(variant, folder, steps), 0, 0
    errors = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EDQUOT)
    for number, at in enumerate(range(moments)[:: max(1, -(-moments // most))]):
        out, wrong = folder / "run", errors[number % len(errors)]
        fault: Fault = fail(wrong)
        code = _injected(variant, out, steps, Moments(fault, at, lasting=True))
        tried += 1
        what = f"{errno.errorcode[wrong]} from moment {at} of {moments}"
        refused = code == REFUSED
        if not refused:
            print(f"{variant}, {what}: ends with {code}", file=sys.stderr, flush=True)
        same += _goes_on(variant, folder, out, steps, what) and refused
    return tried, same


def small_files(variant: str, folder: Path, steps: int, most: int) -> Counted:
    """No file may be longer than some bytes, which the system itself refuses; then it may."""
    tried = same = 0
    for size in [int(1024 * 1.5**step) for step in range(most)]:
        out = folder / "run"

        def work(size: int = size, out: Path = out) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            train(variant, out, steps)

        code = forked(work)
        tried += 1
        same += _goes_on(variant, folder, out, steps, f"files of {size} bytes at most") and code in (0, REFUSED)
        if code not in (0, REFUSED):
            print(f"{variant}, files of {size} bytes at most: ends with {code}", file=sys.stderr, flush=True)
    return tried, same


def little_memory(variant: str, folder: Path, steps: int, most: int) -> Counted:
    """Some megabytes more than the process has already; then as much as there is.

    Where the stack itself may not grow the system ends the process by a signal: what is on disk must survive that too.
    """
    tried = same = 0
    for more in range(most):
        out = folder / "run"

        def work(more: int = more, out: Path = out) -> None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            allowed = pages * resource.getpagesize() + more * MEGABYTE // 2
            resource.setrlimit(resource.RLIMIT_AS, (allowed, resource.RLIM_INFINITY))
            train(variant, out, steps)

        code = forked(work)
        tried += 1
        fine = code in (0, REFUSED, -signal.SIGSEGV)
        same += _goes_on(variant, folder, out, steps, f"{more / 2} MB more") and fine
        if not fine:
            print(f"{variant}, {more / 2} MB more: ends with {code}", file=sys.stderr, flush=True)
    return tried, same


def two_writers(variant: str, folder: Path, steps: int, most: int) -> Counted:
    """Two processes train into one folder at once: one does, the other is refused or finds it finished."""
    same = 0
    for _ in range(most):
        out = folder / "run"
        children = [begun(lambda out=out: train(variant, out, steps)) for _ in range(2)]  # type: ignore[misc]
        codes = sorted(ended(child) for child in children)
        good = codes in ([0, 0], [0, REFUSED])
        same += _goes_on(variant, folder, out, steps, f"two writers, {codes}") and good
    return most, same
