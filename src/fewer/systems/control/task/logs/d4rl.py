"""D4RL's HDF5 files, versions 0 to 2, read and written; no simulator and no D4RL is needed.

Flat arrays `observations`, `actions`, `rewards`, `terminals`, in most files `timeouts`, since version 2
`next_observations`; whatever else is in the file (`infos`, `metadata`) stays unread.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fewer.core.errors import UserError
from fewer.core.files.atomic import refusal, write_atomically
from fewer.systems.control.task.logs.assemble import CLOCK, assemble
from fewer.systems.control.task.logs.transitions import Transitions

__all__ = ["NAMES", "from_file", "make_room", "to_bytes", "write"]

NAMES = {  # our field: D4RL's array
    "observation": "observations",
    "action": "actions",
    "reward": "rewards",
    "next_observation": "next_observations",
    "terminal": "terminals",
    "timeout": "timeouts",
}


def from_file(path: str | Path, file: Any, *, clock: int = CLOCK) -> Transitions:
    """Transitions of an open h5py file; `clock` is for files that do not say where time ended an episode."""
    import h5py

    arrays = {}
    for name, theirs in NAMES.items():
        if theirs in file:
            if not isinstance(file[theirs], h5py.Dataset):
                raise UserError(f"{path}: {theirs} is a group", "an array")
            arrays[name] = file[theirs][()]
    return assemble(str(path), arrays, clock=clock)


def to_bytes(steps: Transitions, about: Mapping[str, str | float] | None = None) -> bytes:
    """The file's content, the same bytes for the same steps; `about` becomes its attributes."""
    from fewer.systems.control.task.worlds.simulator import missing

    with missing():
        import h5py
    memory = io.BytesIO()
    with h5py.File(memory, "w", track_order=False) as file:
        for name, values in steps._asdict().items():
            # no time stamps: they would make two equal files differ
            options = {"compression": "gzip", "compression_opts": 4, "track_times": False}
            file.create_dataset(NAMES[name], data=values, **options)
        for key, value in (about or {}).items():
            file.attrs[key] = value
    return memory.getvalue()


def write(path: str | Path, steps: Transitions, about: Mapping[str, str | float] | None = None) -> int:
    """Write transitions as D4RL's second version has them; the file's length in bytes."""
    content = to_bytes(steps, about)
    make_room(path)
    write_atomically(path, content)
    return len(content)


def make_room(path: str | Path) -> None:
    """The folder of a file to be written; better refused before the work than after."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refusal(error, Path(path).parent) from error
    if Path(path).is_dir():
        raise UserError(f"{path}, a folder", "a file to write")
