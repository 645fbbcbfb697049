"""Generated weather kept on disk: whoever asks first draws it, all who ask after read it, in any process.

A file is whole or absent, and void as soon as anything that drew it has changed. A cache that cannot be written costs
time, not the run.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from torch import Tensor

from fewer.core import seed
from fewer.core.errors import UserError
from fewer.core.files.atomic import locked, write_atomically
from fewer.core.files.cache import cache_folder

__all__ = ["cached_weather", "drawing_sources"]

_LEAST, _MOST = 4 << 20, 512 << 20  # bytes of one file: less is drawn within a second, more would fill a disk
_ALL = 2 << 30  # bytes of all files; those read longest ago go first


def cached_weather(words: str, size: int, draw: Callable[[], Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """What `draw` gives, `size` bytes on the CPU that `words` tell from all other weather; from the disk if there."""
    if not _LEAST <= size <= _MOST:
        return draw()
    folder = cache_folder() / "nowcast"
    path = folder / f"{words}-{_drawn_by()}.safetensors"
    found = _read(path)
    if found is not None:
        return found
    with _alone(path):  # processes that start together draw once
        found = _read(path)
        if found is None:
            found = draw()
            _write(path, found)
    return found


@functools.cache
def _drawn_by() -> str:
    """What the bits of a window depend on beside its settings: what draws it, torch, and the CPU's kernels."""
    sources = (*drawing_sources(Path(__file__).parents[1]), Path(seed.__file__))
    digest = hashlib.sha256(f"{torch.__version__} {torch.backends.cpu.get_cpu_capability()}".encode())
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def drawing_sources(task: Path) -> list[Path]:
    """Of the task's folder, the files that draw weather; no reader, no network and no score among them."""
    beside = [task / name for name in ("bands.py", "windows.py", "generated/windows.py")]
    return [*sorted((task / "weather").glob("*.py")), *beside]


def _read(path: Path) -> Mapping[str, Tensor] | None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        found = load_file(path)
        os.utime(path)  # used just now
    except (OSError, SafetensorError):  # absent, or damaged and drawn anew
        return None
    return dict(found)


def _write(path: Path, tensors: Mapping[str, Tensor]) -> None:
    from safetensors.torch import save

    with suppress(OSError, UserError):
        write_atomically(path, save({name: tensor.contiguous() for name, tensor in tensors.items()}))
        left = _ALL
        for file in sorted(path.parent.glob("*.safetensors"), key=lambda file: -file.stat().st_mtime_ns):
            left -= file.stat().st_size
            if left < 0:
                file.unlink(missing_ok=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """While another process makes the same file, wait; where locks cannot be had, do not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(path.with_suffix(".lock"), "w")  # noqa: SIM115  closed below, whatever happens between
    except OSError:
        yield
        return
    with lock:
        locked(lock, wait=True)
        yield
