"""Files that a task's settings name: what was in them decides a result as much as the settings do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from fewer.core.errors import UserError

__all__ = ["check_unchanged", "named_files"]

_MOST = 2**28  # bytes that are read; of a larger file its size tells the rest


def named_files(settings: Sequence[str]) -> dict[str, str]:
    """By key: a digest of each file that a `key=FILE` word names. Folders are left out."""
    found = {}
    for key, value in _words(settings).items():
        if value and Path(value).is_file():
            found[key] = _digest(Path(value))
    return found


def check_unchanged(
    trained: Mapping[str, str], settings: Sequence[str], changes: Sequence[str] = (), *, cure: str = ""
) -> None:
    """Refuse a file that is not what it was when a run was trained, unless it is named anew."""
    again = _words(changes)
    now = named_files(settings) if trained else {}
    for key, digest in trained.items():
        if key not in again and key in now and now[key] != digest:
            file = _words(settings)[key]
            raise UserError(
                f"{key}={file}, which has changed since the run was trained", "the file as it was",
                f"bring it back, or {cure or f'mean the new one: --set {key}={file}'}",
            )  # fmt: skip


def _words(settings: Sequence[str]) -> dict[str, str]:
    return {key: value for key, _, value in (word.partition("=") for word in settings)}


def _digest(path: Path) -> str:
    found = hashlib.sha256(str(path.stat().st_size).encode())
    with open(path, "rb") as file:
        found.update(file.read(_MOST))
    return found.hexdigest()[:16]
