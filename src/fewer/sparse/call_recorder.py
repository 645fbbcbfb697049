"""Where the compiled kernels say what they did, for whoever records a step: no dispatcher of torch sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from torch import Tensor

__all__ = ["Notebook", "note", "noting", "recording"]


class Notebook(Protocol):
    """Somebody who records."""

    def call(self, name: str, run: Callable[[], object], reads: list[Tensor], writes: list[Tensor]) -> None:
        """A call with the addresses of tensors has been made; `run` makes it again."""


class _Now:
    notebook: Notebook | None = None


@contextmanager
def noting(notebook: Notebook) -> Iterator[None]:
    """Let it know of every call meanwhile."""
    before, _Now.notebook = _Now.notebook, notebook
    try:
        yield
    finally:
        _Now.notebook = before


def recording() -> bool:
    """Whether what happens now will be repeated."""
    return _Now.notebook is not None


def note(name: str, run: Callable[[], object], reads: Iterable[Tensor | None], writes: Iterable[Tensor | None]) -> None:
    """Tell the notebook, if there is one, of a call that passes tensors by address."""
    if _Now.notebook is not None:
        _Now.notebook.call(name, run, [t for t in reads if t is not None], [t for t in writes if t is not None])
