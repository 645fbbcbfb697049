"""What a killed training goes on from: the newest state, and the one before it until the next is on the disk."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fewer.core.files.run_folder import BEST, PREVIOUS, STATE, Damaged, Folder

if TYPE_CHECKING:
    from fewer.core.engines.base import Engine

__all__ = ["forget", "restore_", "save"]


def save(engine: Engine, folder: Folder) -> None:
    """Everything that going on needs; the state before stays beside it."""
    folder.write_state(dict(engine.state.named()))


def restore_(engine: Engine, folder: Folder) -> bool:
    """Go on from the newest state that is whole; False if there is none."""
    there = [name for name in (STATE, PREVIOUS) if (folder.path / name).exists()]
    while there:
        try:
            engine.restore_(folder.read_tensors(there[0]))
        except Damaged as error:
            if len(there) == 1:
                raise
            print(f"fewer: {error.given}; going on from the state before it, {there[1]}", file=sys.stderr)
            folder.remove(there.pop(0))  # else the next save would put it in the place of the good one
            continue
        folder.check_log(there[0], engine.count)
        return True
    return False


def forget(folder: Folder) -> None:
    """Remove what only an unfinished run needs."""
    for name in (STATE, PREVIOUS, BEST):
        folder.remove(name)
