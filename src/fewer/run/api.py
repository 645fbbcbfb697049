"""What one does in a notebook: prune, train, load, audit, pack, open a pack, export it, go back to torch.

What they return shows itself in Jupyter. Opening a pack needs no torch.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fewer.core.errors import Notice, UserError
from fewer.packs.pack import Allowance, Pack

if TYPE_CHECKING:
    from torch import nn

    from fewer.attack.audit import Report
    from fewer.core.task import Task
    from fewer.run.load import Trained
    from fewer.run.options import Words

__all__ = ["audit", "export", "load", "open_pack", "pack", "prune", "to_torch", "train"]


def train(
    task: str | type[Task[Any]] | nn.Module,
    out: str | os.PathLike[str],
    *,
    data: Any = None,
    validation: Any = None,
    bounds: tuple[float, float] | None = None,
    callbacks: Sequence[Callable[[dict[str, Any]], None]] = (),
    **words: Unpack[Words],
) -> Trained:
    """Train a network of yours, or a task's, into the folder `out`, or go on there; the finished run.

    A network, with the weights it has, comes with `data`: (inputs, targets), a data set or a loader, of which every
    fifth sample is held out, or a dict of such by `train`, `test` and maybe `validation`. Whole numbers as targets are
    classes. `bounds` are the lowest and the highest legal input, which no attack leaves. A task is named as on the
    command line, or a class of one's own that can be imported again. `callbacks` are called with every line of the log.
    The words are those of `fewer train`: `settings` of the task as a dict, `prune` as a method with what differs from
    its defaults, such as "auto,sparsity=0.95" (the task's own recipe), "snip,sparsity=0.95", "lamp,when=gradual" or
    "lottery", `harden` as a kind and a budget, such as "pgd:0.3", `steps`, `batch`, `lr`, `optimizer`, `device` and the
    others of `fewer.run.options.Words`. Of several `seeds` the first is returned, with all of them in
    `replicas`.
    """
    from fewer.core.engines.loop import Loop
    from fewer.core.files.run_folder import Folder
    from fewer.core.task import Task
    from fewer.run.options import job_of, tell_if_worse

    def told(line: dict[str, Any]) -> None:
        for call in callbacks:
            call(line)

    settings: tuple[str, ...] = ()
    held: object = None
    if isinstance(task, str | type | Task):
        if data is not None or validation is not None or bounds is not None:
            raise UserError("data for a task", "none: a task has its own", "give a network instead")
        name = task if isinstance(task, str) else _place(task)
    else:
        from fewer.custom.given import give

        if "settings" in words:
            raise UserError("settings for a network", "none: a network has no settings", "leave them out")
        name, settings, held = give(task, data, validation=validation, bounds=bounds)
    job = job_of(name, {**words, **({"settings": settings} if settings else {})})
    tell_if_worse(job)
    job.run(Path(out), loop=Loop(on_log=told))
    runs = [load(part.path) for part in Folder(Path(out)).seeds()] if len(job.seeds) > 1 else [load(out)]
    if held is not None or job.task.startswith("__main__:"):
        _keep(runs[0], out)
    return replace(runs[0], replicas=tuple(runs)) if len(runs) > 1 else runs[0]


def _keep(run: Trained, out: str | os.PathLike[str]) -> None:
    """What another process needs to read the run; one line where it cannot be kept."""
    from fewer.custom.given import keep_given
    from fewer.custom.supervised import SupervisedTask

    if not isinstance(run.task, SupervisedTask):
        lost: str | None = f"{run.job.task} is loaded where that class is defined: in this notebook, or in a file"
    elif lost := keep_given(run.task, run.task.networks()["net"], Path(out)):
        lost = f"it is loaded with the network alone, fewer.load(path, model=...): torch cannot export it ({lost})"
    if lost:
        warnings.warn(f"{out}: {lost}", Notice, stacklevel=3)


def load(path: str | os.PathLike[str], *, model: nn.Module | None = None, data: Any = None) -> Trained:
    """A finished run from its folder, ready to predict; nothing is unpickled.

    A run of a network that was given as an object takes it again as `model`, so that its own class answers instead of
    the program that is kept; and `data`, where the samples were too many to be kept.
    """
    from fewer.run.load import load as read

    if model is None and data is None:
        return read(Path(path))
    from fewer.custom.given import give_again

    held = give_again(Path(path), model, data)
    run = read(Path(path))
    del held
    return run


def prune(
    model: nn.Module, data: Any, sparsity: float = 0.9, *, method: str = "lamp", seed: int = 0, **more: Any
) -> nn.Module:
    """A copy of a network with `sparsity` of its prunable weights zero, at once and without training.

    `data` as for `train`; `method` as for `prune` there, with its settings: method="snip,scope=layer", or
    only="encoder.*". Pruned weights have no gradient any more, so that training on leaves them zero.
    """
    from fewer.custom.oneshot import pruned

    return pruned(model, data, method, {"sparsity": sparsity, **more}, seed)


def to_torch(run: Trained | str | os.PathLike[str], form: str = "module", *, network: str | None = None) -> Any:
    """A run's network for torch, pruned weights zero: its `module`, a `state_dict` that loads into the original class,
    or a `program` of torch.export.
    """
    from fewer.run.plain import torch_of

    return torch_of(_finished(run), form, network)


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


def export(
    pack: Pack | str | os.PathLike[str], path: str | os.PathLike[str], *, name: str = "predict",
    length: int | None = None,
) -> Path:  # fmt: skip
    """Write a pack, or the file of one, as ONNX or as C, by the ending of `path`; needs no torch.

    `name` is the function's in C, `length` the longest sequence there of a pack that takes any.
    """
    given, target = pack if isinstance(pack, Pack) else open_pack(pack, allowance=Allowance.unlimited()), Path(path)
    if target.suffix == ".c":
        from fewer.packs.export.c import export as to_c

        to_c(given, target, name, length=length)
    elif target.suffix == ".onnx":
        from fewer.packs.export.onnx import export as to_onnx

        to_onnx(given, target)
    else:
        raise UserError(f"an export to {target.name}", "a name that ends in .onnx or .c")
    return target


def _finished(run: Trained | str | os.PathLike[str]) -> Trained:
    return load(run) if isinstance(run, str | os.PathLike) else run


def _place(task: object) -> str:
    if not isinstance(task, type):
        kind = type(task).__name__
        raise UserError(
            f"an instance of {kind}", "a task's name or its class, from which `load` can make it again",
            f"write train({kind}, ..., settings={{...}})",
        )  # fmt: skip
    if "." in task.__qualname__:
        raise UserError(
            f"{task.__qualname__} of {task.__module__}", "a class in a file of its own, which `load` can import again",
            "move it into my_task.py and write my_task:MyTask",
        )  # fmt: skip
    return f"{task.__module__}:{task.__qualname__}"
