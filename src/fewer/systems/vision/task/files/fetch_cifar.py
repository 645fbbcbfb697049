"""CIFAR-10 in its binary version on a user's disk, from where its authors keep it.

The archive's MD5 is the one that its page tells; of what is in it only the six known files are taken, each of the
known size.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically

__all__ = ["fetch_cifar10"]

_MIRRORS = ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",)
_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"
_LARGEST = 1 << 28  # bytes of the archive, 170 million in truth
_IMAGES = 10_000  # in each file
_RECORD = 1 + 3 * 32 * 32
_FILES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
_TIMEOUT_S = 30


def fetch_cifar10(folder: Path, mirrors: Sequence[str] = _MIRRORS, *, md5: str = _MD5, images: int = _IMAGES) -> None:
    """Write the six files that are not there and whole."""
    size = images * _RECORD
    if all((folder / name).is_file() and (folder / name).stat().st_size == size for name in _FILES):
        return
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "cifar.tar.gz"
        for mirror in mirrors:
            try:
                _download(mirror, archive, md5)
                folder.mkdir(parents=True, exist_ok=True)
                for name, content in _members(archive, size).items():
                    write_atomically(folder / name, content)
                return
            except (OSError, EOFError, ValueError, tarfile.TarError) as error:
                failures.append(f"{mirror}: {type(error).__name__} {error}")
    raise UserError(
        f"no CIFAR-10 from {' | '.join(failures)}", "a mirror within reach",
        f"put {_FILES[0]} to {_FILES[-1]} into {folder}, or name a tar of train/CLASS/*.jpg as data",
    )  # fmt: skip


def _download(address: str, target: Path, md5: str) -> None:
    digest, length = hashlib.md5(usedforsecurity=False), 0
    with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer, target.open("wb") as file:
        while piece := answer.read(1 << 20):
            length += len(piece)
            if length > _LARGEST:
                raise OSError(f"more than {_LARGEST} bytes")
            digest.update(piece)
            file.write(piece)
    if digest.hexdigest() != md5:
        raise OSError(f"another checksum, {digest.hexdigest()}")


def _members(archive: Path, size: int) -> dict[str, bytes]:
    """The six files of the archive by their names; paths inside it are not followed."""
    found = {}
    with tarfile.open(archive, "r:gz") as opened:
        for member in opened:
            name = Path(member.name).name
            stream = opened.extractfile(member) if name in _FILES and member.isfile() else None
            if stream is not None:
                found[name] = stream.read(size + 1)
    for name in _FILES:
        if len(found.get(name, b"")) != size:
            raise OSError(f"{name} of {len(found.get(name, b''))} bytes instead of {size}")
    return found
