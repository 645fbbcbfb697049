"""A process that has imported the libraries of others and nothing of this project, and forks for every trial."""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["KILLED", "LATE", "SURVIVED", "forked", "trial", "warm"]

KILLED, SURVIVED, LATE = "killed", "survived", "killed by time"
_LOOK = 0.25  # seconds between two looks at what a trial does
LIBRARIES = (
    "pytest", "hypothesis", "numpy", "torch", "torch.func", "torch._dynamo", "torch.fx", "safetensors.torch", "rich",
    "scipy.sparse", "scipy.stats", "sklearn.metrics", "onnx", "onnxruntime", "foolbox", "matplotlib.pyplot",
    "torch.nn.utils.prune", "gymnasium", "h5py", "xarray", "PIL.Image",
)  # fmt: skip


def warm(tree: Path) -> None:
    """Import what does not change, and let everything else come from the copy of the tree."""
    os.environ |= {
        "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join((str(tree / "src"), str(tree))),
        "MPLBACKEND": "agg",
    }  # fmt: skip
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(tree / "src"), str(tree)]
    os.chdir(tree)
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    assert "fewer" not in sys.modules


def forked(work: Callable[[], int], log: Path, idle: float) -> int:
    """The exit code of work in a fork, silent; negative where a signal ended it, as one does that waits too long.

    It waits while none of its processes wants the processor: one that gets none, for others are busy, does not.
    """
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.setsid()
            handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            code = work()
        finally:
            sys.stdout.flush()
            os._exit(code)
    waited, looked = 0.0, time.monotonic()
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        now = time.monotonic()
        if now - looked > _LOOK:
            waited, looked = waited + (0.0 if _wants(child) else min(now - looked, 2 * _LOOK)), now
        if waited > idle:
            os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a trial left running
    return os.waitstatus_to_exitcode(status)


def _wants(session: int) -> bool:
    """Whether a thread of a session runs, would run, or reads and writes."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if _stat(process)[3] == str(session) and any(_stat(one)[0] in "RD" for one in process.glob("task/*")):
                return True
    return False


def _stat(process: Path) -> list[str]:
    """Its state, parent, group, session and more."""
    return (process / "stat").read_text().rpartition(")")[2].split()


def trial(tests: list[str], log: Path, *, processor: float) -> str:
    """Whether one of the tests fails; a trial that takes or waits too long counts as one that does."""

    def work() -> int:
        import pytest

        spent = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(spent + processor) + 1, int(spent + processor) + 3))
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--tb=line", *tests]))

    code = forked(work, log, 2 * processor)
    if code < 0:
        return LATE
    return SURVIVED if code == 0 else KILLED
