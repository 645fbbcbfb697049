"""Files that are whole or absent, never half written, and JSON that everybody can read; standard library alone."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from typing import Any

from fewer.core.errors import UserError

__all__ = ["finite", "refusal", "write_whole"]


def finite(content: Any) -> Any:
    """The same with null for what JSON has no number for."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write to a temporary name, flush to the disk, rename: a kill or a full disk leaves the old file as it was."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise refusal(error, target) from error
    finally:
        temporary.unlink(missing_ok=True)


def refusal(error: OSError, path: Path) -> UserError:
    """What went wrong in writing there, and the cure."""
    cures = {
        errno.ENOSPC: "free some space and run the same command again; nothing that was saved is lost",
        errno.EROFS: "choose another --out",
        errno.EACCES: "choose another --out or change its permissions",
    }
    cure = cures.get(error.errno or 0, "")
    return UserError(f"{path}: {error.strerror or error}", "a folder that can be written", cure)
