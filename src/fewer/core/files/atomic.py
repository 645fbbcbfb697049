"""Files that are whole or absent, never half written, and JSON that everybody can read; standard library alone."""

from __future__ import annotations

import errno
import glob
import json
import math
import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from fewer.core.errors import UserError

__all__ = ["clear_parts", "finite", "json_bytes", "locked", "refusal", "write_atomically", "write_json"]

_NO_FOLDERS = (errno.EINVAL, errno.EBADF, errno.EACCES, errno.ENOTSUP)  # how a system says that it flushes files alone


def finite(content: Any) -> Any:
    """The same with null for what JSON has no number for."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def write_atomically(path: str | os.PathLike[str], content: bytes, *, previous: Path | None = None) -> None:
    """Write to a temporary name, flush to the disk, rename: a kill or a full disk leaves the old file as it was.

    With `previous` the old file gets that name instead of being replaced.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        clear_parts(target.parent, f".{glob.escape(target.name)}.[0-9]*.part")
        with _claimed(temporary) as file:
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                if previous is not None:
                    with suppress(FileNotFoundError):
                        os.replace(target, previous)
                os.replace(temporary, target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        _flush_names(target.parent)
    except OSError as error:
        raise refusal(error, target) from error


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """The same for a JSON file."""
    write_atomically(path, json_bytes(content))


def json_bytes(content: Any) -> bytes:
    """What such a file holds."""
    return (json.dumps(finite(content), indent=1, allow_nan=False) + "\n").encode()


def clear_parts(folder: Path, pattern: str = "**/.*.[0-9]*.part") -> None:
    """Remove what killed writers left, by default in all folders within; a file being written is locked, and stays."""
    for part in folder.glob(pattern):
        with suppress(OSError), open(part, "rb") as file:
            if locked(file, wait=False):
                part.unlink(missing_ok=True)


def _claimed(path: Path) -> IO[bytes]:
    """A new file that is locked until it is closed."""
    while True:
        file = open(path, "ab")  # noqa: SIM115  not "wb": until it is locked it may be another's
        locked(file, wait=True)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):  # not removed or renamed meanwhile
                file.truncate(0)
                return file
        file.close()


def locked(file: IO[Any], *, wait: bool) -> bool:
    """Whether this process now holds the file; where files cannot be locked, nobody ever does."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


def _flush_names(folder: Path) -> None:
    """Let a rename survive a power cut."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDERS:
            raise


def refusal(error: OSError, path: Path) -> UserError:
    """What went wrong in writing there, and the cure."""
    cures = {
        errno.ENOSPC: "free some space and run the same command again; nothing that was saved is lost",
        errno.EROFS: "choose another --out",
        errno.EACCES: "choose another --out or change its permissions",
    }
    cure = cures.get(error.errno or 0, "")
    return UserError(f"{path}: {error.strerror or error}", "a folder that can be written", cure)
