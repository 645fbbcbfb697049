"""The five things one does in a notebook: train, load, audit, pack, open a pack. Everything else is a module away.

What they return shows itself in Jupyter. Only `train`, `load`, `audit` and `pack` need torch.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fewer.core.errors import UserError
from fewer.packs.pack import Allowance, Pack

if TYPE_CHECKING:
    from fewer.attack.audit import Report
    from fewer.core.task import Task
    from fewer.run.load import Trained
    from fewer.run.options import Words

__all__ = ["audit", "load", "open_pack", "pack", "train"]


def train(task: str | type[Task[Any]], out: str | os.PathLike[str], **words: Unpack[Words]) -> Trained:
    """Train a task's networks into the folder `out`, or go on there; the finished run.

    A task is named as on the command line, or a class of one's own in a module that can be imported again. The words
    are those of `fewer train`: `settings` of the task as a dict, `prune` as a method with what differs from its
    defaults, such as "snip,sparsity=0.95" or "lottery", `harden` as a kind and a budget, such as "pgd:0.3", `steps`,
    `optimizer`, `seeds` and the others of `fewer.run.options.Words`.
    """
    from fewer.run.options import job_of

    job = job_of(task if isinstance(task, str) else _place(task), words)
    if len(job.seeds) > 1:
        raise UserError(f"seeds {job.seeds}", "one, for `train` gives one run back", "fewer.Job(...).run(out)")
    job.run(Path(out))
    return load(out)


def load(path: str | os.PathLike[str]) -> Trained:
    """A finished run from its folder, ready to predict; nothing is unpickled."""
    from fewer.run.load import load as read

    return read(Path(path))


def audit(run: Trained | str | os.PathLike[str], attacks: str = "suite:0.3", *, limit: int | None = None) -> Report:
    """How much of a classifier's accuracy stands under attack, on the first `limit` test samples."""
    from fewer.attack.audit import Audit, robust
    from fewer.core.engines.nets import NetworkSet

    found = _finished(run)
    return robust(found.task, NetworkSet(found.modules, training=False), attacks, Audit(limit=limit))


def pack(run: Trained | str | os.PathLike[str], path: str | os.PathLike[str], *, values: str = "float32") -> Pack:
    """Write a run's kept weights into one small file, and open it; a run may be named by its folder."""
    from fewer.packs import pack as packs
    from fewer.run.packing import pack_run

    pack_run(_finished(run), Path(path), values)
    return packs.load(path, allowance=packs.Allowance.unlimited())


def open_pack(path: str | os.PathLike[str], *, allowance: Allowance | None = None) -> Pack:
    """A pack from its file, or by the name of one that comes with the package; needs no torch.

    `allowance` is what a prediction may take; `Allowance.unlimited()` sets no bound.

    >>> open_pack("digits-3197").settings["task"]
    'vision'
    """
    from fewer import zoo
    from fewer.packs import pack as packs

    return packs.load(zoo.find(path), allowance=allowance)


def _finished(run: Trained | str | os.PathLike[str]) -> Trained:
    return load(run) if isinstance(run, str | os.PathLike) else run


def _place(task: object) -> str:
    if not isinstance(task, type):
        kind = type(task).__name__
        raise UserError(
            f"an instance of {kind}", "a task's name or its class, from which `load` can make it again",
            f"write train({kind}, ..., settings={{...}})",
        )  # fmt: skip
    if task.__module__ == "__main__" or "." in task.__qualname__:
        raise UserError(
            f"{task.__qualname__} of {task.__module__}", "a class in a file of its own, which `load` can import again",
            "move it into my_task.py and write my_task:MyTask",
        )  # fmt: skip
    return f"{task.__module__}:{task.__qualname__}"
