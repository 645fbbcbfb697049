"""The five things one does in a notebook: train, load, audit, pack, open a pack. Everything else is a module away.

What they return shows itself in Jupyter. Only `train`, `load`, `audit` and `pack` need torch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewer.core.errors import UserError
from fewer.packs.pack import Allowance, Pack

if TYPE_CHECKING:
    from fewer.attack.audit import Report
    from fewer.core.task import Task
    from fewer.run.load import Trained

__all__ = ["audit", "load", "open_pack", "pack", "train"]


def train(
    task: str | type[Task[Any]],
    out: str | os.PathLike[str],
    *,
    settings: Mapping[str, object] | None = None,
    prune: str | None = None,
    harden: str | None = None,
    steps: int | None = None,
) -> Trained:
    """Train a task's networks into the folder `out`, or go on there; the finished run.

    A task is named as on the command line, or a class of one's own in a module that can be imported again. `prune` is
    a method with what differs from its defaults, such as "snip,sparsity=0.95" or "lottery"; `harden` is a kind and a
    budget, such as "pgd:0.3". Anything rarer is a field of `fewer.run.job.Job`.
    """
    from fewer.attack.hardening.recipe import harden_text
    from fewer.core.engines.base import Training
    from fewer.core.registry import task_class
    from fewer.pruning.recipe import parse_prune
    from fewer.run.job import Job

    name = task if isinstance(task, str) else _place(task)
    options = dict(task_class(name)[0].recommended)
    if steps is not None:
        options["steps"] = steps
    job = Job(
        name,
        tuple(f"{key}={_text(value)}" for key, value in (settings or {}).items()),
        Training(**options),
        prune=parse_prune(prune),
        harden=harden_text(harden),
    )
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


def _text(value: object) -> str:
    return ",".join(str(part) for part in value) if isinstance(value, tuple | list) else str(value)
