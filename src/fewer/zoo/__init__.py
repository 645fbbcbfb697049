"""Trained packs that come with the package: `load(path("digits-9348"))` and predict, without torch."""

from __future__ import annotations

from pathlib import Path

from fewer.core.errors import UserError
from fewer.core.settings import nearest

__all__ = ["names", "path"]


def names() -> list[str]:
    """What there is.

    >>> "digits-3197" in names()
    True
    """
    return sorted(file.stem for file in Path(__file__).parent.glob("*.pack"))


def path(name: str) -> Path:
    """The file of a trained pack."""
    file = Path(__file__).parent / f"{name}.pack"
    if not file.exists():
        raise UserError(f"pack {name!r}", "one that comes with the package", nearest(name, names()))
    return file
