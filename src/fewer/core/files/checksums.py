"""Checksums of files that have none of their own, kept in a file beside them: a flipped bit is found in reading."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewer.core.files.atomic import write_json

__all__ = ["fits", "of_lines", "write"]


def of_bytes(content: bytes) -> str:
    """Eight hexadecimal digits."""
    return f"{zlib.crc32(content):08x}"


def of_lines(lines: Sequence[Any]) -> str:
    """The same of lines of JSON, however they are spaced."""
    return of_bytes("".join(json.dumps(line) + "\n" for line in lines).encode())


def write(path: Path, names: Sequence[str], **others: bytes) -> None:
    """Note the files beside `path` that are there, and others whose content is known and that are written next."""
    there = {name: (path.parent / name).read_bytes() for name in names if (path.parent / name).exists()}
    write_json(path, {name: of_bytes(content) for name, content in {**there, **others}.items()})


def fits(path: Path, name: str, content: bytes) -> bool:
    """Whether a file holds what was noted; one that nobody noted does, and none does where the notes are damaged."""
    try:
        noted = json.loads(path.read_bytes())
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return isinstance(noted, dict) and noted.get(name, of_bytes(content)) == of_bytes(content)
