"""How a training begins: from the state that a killed one left, or pruned where pruning comes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fewer.core.engines.base import Engine
from fewer.core.errors import UserError
from fewer.core.files import checkpoint
from fewer.core.files.run_folder import Folder
from fewer.pruning.pruning import Pruning, prune_

__all__ = ["restore_or_prune_"]


def restore_or_prune_(
    engine: Engine,
    folder: Folder,
    prunings: Sequence[Pruning | None],
    *,
    refused: Callable[[int, UserError], None] | None = None,
) -> bool:
    """Go on from a saved state (True), or prune each replica whose pruning is not gradual before the first step.

    `refused` is told of a replica that cannot be pruned, which then goes on unpruned; without it the error is raised.
    """
    if checkpoint.restore_(engine, folder):
        return True
    for replica, pruning in enumerate(prunings):
        if pruning is None or pruning.when == "gradual":
            continue
        try:
            prune_(engine, pruning, replica)
        except UserError as error:
            if refused is None:
                raise
            refused(replica, error)
    return False
