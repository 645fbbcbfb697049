"""Telling that memory ended from everything else that torch, numpy and Python raise."""

from __future__ import annotations

__all__ = ["out_of_memory"]

_SIGNS = (
    "out of memory", "can't allocate memory", "cannot allocate memory", "alloc_failed",
    "could not create a primitive", "could not execute a primitive",  # oneDNN, where its own memory ends
)  # fmt: skip


def out_of_memory(error: BaseException) -> bool:
    """Python and numpy have a class for it; torch and Ray say it in words."""
    return isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in _SIGNS)
