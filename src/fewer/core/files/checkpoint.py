"""What a killed training goes on from: the newest state, and the one before it until the next is on the disk."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fewer.core.files.run_folder import Damaged, Folder

if TYPE_CHECKING:
    from fewer.core.engines.base import Engine

__all__ = ["forget", "restore_", "save"]

_STATE, _PREVIOUS = "state.safetensors", "state.previous.safetensors"


def save(engine: Engine, folder: Folder) -> None:
    """Everything that going on needs; the state before stays beside it."""
    folder.write_tensors(_STATE, dict(engine.state.named()), previous=_PREVIOUS)


def restore_(engine: Engine, folder: Folder) -> bool:
    """Go on from the newest state that is whole; False if there is none."""
    there = [name for name in (_STATE, _PREVIOUS) if (folder.path / name).exists()]
    while there:
        try:
            engine.restore_(folder.read_tensors(there[0]))
            return True
        except Damaged as error:
            if len(there) == 1:
                raise
            print(f"fewer: {error.given}; going on from the state before it, {there[1]}", file=sys.stderr)
            folder.remove(there.pop(0))  # else the next save would put it in the place of the good one
    return False


def forget(folder: Folder) -> None:
    """A finished run needs neither."""
    for name in (_STATE, _PREVIOUS):
        folder.remove(name)
