"""Telling that memory ended from everything else that torch, numpy and Python raise, and giving it back."""

from __future__ import annotations

import ctypes
import gc
import sys

__all__ = ["let_go", "out_of_memory"]

_SIGNS = (
    "out of memory", "can't allocate memory", "cannot allocate memory", "alloc_failed",
    "could not create a primitive", "could not execute a primitive",  # oneDNN, where its own memory ends
)  # fmt: skip


def out_of_memory(error: BaseException) -> bool:
    """Python and numpy have a class for it; torch and Ray say it in words."""
    return isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in _SIGNS)


def let_go() -> None:
    """Collect circles, then have the C library hand free pages to the system: glibc keeps them until it is asked."""
    gc.collect()
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(ctypes.c_size_t(0))
