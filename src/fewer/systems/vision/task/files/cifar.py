"""CIFAR-10 and CIFAR-100 in their binary version: records of one or two label bytes and 3 x 32 x 32 pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError

__all__ = ["found", "read_binary", "read_folder"]

_SHAPE = (3, 32, 32)
_TEN = {"train": tuple(f"data_batch_{n}.bin" for n in range(1, 6)), "test": ("test_batch.bin",)}
_HUNDRED = {"train": ("train.bin",), "test": ("test.bin",)}


def found(folder: Path) -> bool:
    """Whether the folder holds one of the two sets, whole or not."""
    return (folder / _TEN["train"][0]).is_file() or (folder / _HUNDRED["train"][0]).is_file()


def read_binary(path: Path, *, label_bytes: int, classes: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (count, 3, 32, 32) and labels; with two label bytes (coarse, fine) the fine one."""
    record = label_bytes + 3 * 32 * 32
    try:
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "a readable CIFAR binary file") from error
    if len(content) == 0 or len(content) % record:
        raise UserError(f"{path} of {len(content)} bytes", f"a multiple of {record}", "fetch it again")
    rows = content.reshape(-1, record)
    labels = rows[:, label_bytes - 1].astype(np.int64)
    if labels.max() >= classes:
        raise UserError(f"{path} with label {labels.max()}", f"0 to {classes - 1}", "is it the other CIFAR set?")
    return rows[:, label_bytes:].reshape(-1, *_SHAPE), labels


def read_folder(folder: Path, split: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All images of `train` or `test`, from whichever of the two sets the folder holds."""
    ten = (folder / _TEN["train"][0]).is_file()
    names = (_TEN if ten else _HUNDRED)[split]
    for name in names:
        if not (folder / name).is_file():
            raise UserError(f"{folder} without {name}", "all files of the set's binary version", "unpack it again")
    label_bytes, classes = (1, 10) if ten else (2, 100)
    parts = [read_binary(folder / name, label_bytes=label_bytes, classes=classes) for name in names]
    return np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])
