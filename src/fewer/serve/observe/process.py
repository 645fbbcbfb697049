"""What the system says of this process; 0 where it does not."""

from __future__ import annotations

import os

__all__ = ["most_files", "open_files", "resident_bytes"]

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident_bytes() -> int:
    """Memory that it holds now."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def open_files() -> int:
    """File descriptors, connections among them."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def most_files() -> int:
    """How many it may open."""
    try:
        import resource
    except ModuleNotFoundError:
        return 0
    return int(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
