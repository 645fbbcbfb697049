"""Opening an npz of unknown origin: never pickled objects, never more bytes than stated."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError

__all__ = ["opened"]


@contextmanager
def opened(path: Path, largest: int) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Its arrays by name, read when asked for; a small file may claim any size, so sizes are added up before."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > largest:
        raise UserError(f"{path} with {size} bytes of arrays", f"at most {largest}", "split it")
    with np.load(path, allow_pickle=False) as held:
        yield held
