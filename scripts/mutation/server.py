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


def forked(work: Callable[[], int], log: Path, seconds: float) -> int:
    """The exit code of work in a fork, silent; negative where a signal ended it, as one does after `seconds`."""
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
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a trial left running
    return os.waitstatus_to_exitcode(status)


def trial(tests: list[str], log: Path, *, processor: float, wall: float) -> str:
    """Whether one of the tests fails; a trial that takes too long counts as one that does."""

    def work() -> int:
        import pytest

        spent = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(spent + processor) + 1, int(spent + processor) + 3))
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--tb=line", *tests]))

    code = forked(work, log, wall)
    if code < 0:
        return LATE
    return SURVIVED if code == 0 else KILLED
