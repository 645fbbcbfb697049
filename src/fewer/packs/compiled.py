"""Whether the C kernels were built with the package, and the one line that says what their absence costs."""

from __future__ import annotations

import warnings

from fewer.core.errors import Notice
from fewer.packs.file import codec
from fewer.packs.runtime import chain

__all__ = ["KernelsMissing", "missing", "warn_once"]

_told: set[str] = set()


class KernelsMissing(Notice):
    """Packs work without the C kernels, slowly."""


def missing() -> str:
    """One line, or nothing where the kernels are there."""
    if codec.compiled() and chain.kernels() is not None:
        return ""
    return (
        "the C kernels are missing: packs open 20 to 140 times slower; "
        "install a C compiler (such as gcc), then the package again"
    )


def warn_once() -> None:
    """Say so, once a process."""
    line = missing()
    if line and line not in _told:
        _told.add(line)
        warnings.warn(line, KernelsMissing, stacklevel=3)
