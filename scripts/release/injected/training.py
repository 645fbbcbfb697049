"""The trainings that faults are put into, in forks of a process that has imported everything."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.run.kills import SETTINGS, VARIANTS, different, train

from fewer.core.errors import UserError
from fewer.core.machine.memory import out_of_memory

__all__ = ["ENDED", "VARIANTS", "different", "forked", "judged", "reference", "scratch", "train", "warm"]

ENDED, REFUSED = 9, 2


def warm() -> None:
    """Import everything and read the images once; forks share both."""
    import torch

    import fewer.run.job
    from fewer.core.registry import make

    torch.set_num_threads(1)
    fewer.run.job.make = functools.cache(make)  # type: ignore[attr-defined]
    fewer.run.job.make("vision", SETTINGS)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        yield Path(folder)


def forked(work: Callable[[], Any]) -> int:
    """The exit code of work in a process of its own."""
    return ended(begun(work))


def begun(work: Callable[[], Any]) -> int:
    """The number of a process that works; it ends as the command line would."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            code = judged(error)
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """Its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def judged(error: BaseException) -> int:
    """What the command line exits with: 2 and one line for a refusal and for memory that ended, 1 for a defect."""
    if (isinstance(error, UserError) and "\n" not in str(error)) or out_of_memory(error):
        return REFUSED
    print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return 1


def reference(variant: str, folder: Path, steps: int) -> Path:
    """A training that nothing happens to."""
    out = folder / f"reference-{variant}"
    if not out.exists() and forked(lambda: train(variant, out, steps)) != 0:
        raise SystemExit("the training that nobody disturbed failed")
    return out
