"""Why a point has no metrics: one of a few kinds, and one line."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from fewer.core.errors import Diverged, UserError
from fewer.core.machine.memory import out_of_memory

__all__ = ["Failure", "failure_of"]


@dataclass(frozen=True)
class Failure:
    """`trace` is where, for what nobody foresaw."""

    kind: str  # out of memory, diverged, user error, worker died, error
    why: str
    trace: str = ""

    @property
    def again(self) -> bool:
        """Whether what was trained so far is worth going on from."""
        return self.kind in ("out of memory", "worker died")


def failure_of(error: BaseException) -> Failure:
    """What an exception means for a point."""
    line = " ".join(str(error).split()) or type(error).__name__
    if out_of_memory(error):
        return Failure("out of memory", line[:300])
    if isinstance(error, UserError):
        return Failure("diverged" if isinstance(error, Diverged) else "user error", line)
    return Failure("error", f"{type(error).__name__}: {line[:300]}", "".join(traceback.format_exception(error)))
