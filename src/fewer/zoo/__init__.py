"""Trained packs that come with the package: `load(path("digits-9348"))` and predict, without torch."""

from __future__ import annotations

import os
from pathlib import Path

from fewer.core.errors import UserError
from fewer.core.settings import nearest
from fewer.packs.program import PackError

__all__ = ["find", "names", "path"]


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


def find(
    place: str | os.PathLike[str], expected: str = "a pack, or the name of one that comes with the package"
) -> Path:
    """The file that a user means: a path, or, where there is none, a name.

    >>> find("digits-3197") == path("digits-3197")
    True
    """
    if Path(place).exists():
        return Path(place)
    if str(place) not in names():
        raise PackError(f"{place}, which does not exist", expected, nearest(str(place), names()))
    return path(str(place))
