"""Reading a finished run: its job, its networks with their weights, its masks and its metrics."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.state import check_finite, fill_, fresh_modules
from fewer.core.errors import UserError
from fewer.core.files.fingerprints import check_unchanged
from fewer.core.files.run_folder import CONFIG, MASK, WEIGHTS, Folder
from fewer.core.renamed import modern
from fewer.core.task import Task
from fewer.custom.given import kept_task
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job

__all__ = ["Trained", "job_from", "load"]

_WROTE = "what `fewer train` wrote"
_KINDS = {
    "task": str, "settings": list, "training": dict, "prune": dict | None, "harden": str | None, "engine": str,
    "seeds": list, "start_from": str | None,
}  # fmt: skip


@dataclass(frozen=True)
class Trained:
    """A finished run, ready to predict."""

    path: Path
    job: Job
    task: Task[Any]
    modules: dict[str, nn.Module]
    mask: dict[str, dict[str, Tensor]]
    metrics: dict[str, float]
    replicas: tuple[Trained, ...] = ()  # of several seeds, all of them

    def _repr_html_(self) -> str:
        from fewer.run.notebook import run_shown

        return run_shown(self)


def load(path: str | Path, changes: Sequence[str] = ()) -> Trained:
    """A finished single run from its folder; nothing is unpickled.

    `changes` are settings of the task that are no longer as they were, such as `data=DIR` after the data moved.
    """
    folder = Folder(path)
    job = job_from(folder.read_json(CONFIG))
    folder.refuse_unless_one_run()
    check_unchanged(folder.versions().get("files", {}), job.settings, changes)
    if (given := folder.given()) is not None:
        if job.task.startswith("__main__:") and not hasattr(sys.modules["__main__"], job.task.partition(":")[2]):
            job = replace(job, task=kept_task(given), settings=())  # the notebook is gone, and what it had is kept
        changes = (f"at={given}", *changes) if job.task == kept_task(given) else changes
    task = job.plain_task(changes)
    modules = fresh_modules(task, job.seeds[0])
    weights = folder.read_networks(WEIGHTS)
    for name, module in modules.items():
        fill_(module, weights.get(name, {}))
        module.train(False)
    check_finite(modules, str(path))
    return Trained(folder.path, job, task, modules, folder.read_networks(MASK), folder.metrics()[0])


def job_from(config: Mapping[str, Any]) -> Job:
    """The job that a run's configuration describes."""
    try:
        for name, kind in _KINDS.items():
            if not isinstance(config[name], kind):
                raise UserError(f"a {CONFIG} whose {name} is {config[name]!r}", _WROTE, "train anew")
        if not all(isinstance(word, str) for word in config["settings"]):
            raise UserError(f"a {CONFIG} whose settings are {config['settings']}", _WROTE, "train anew")
        training = modern(config["training"])
        described = dict(training.pop("optimizer"))
        described["betas"] = tuple(described["betas"])
        training["device"] = "cpu"  # where it was trained does not matter for reading it
        return Job(
            task=config["task"],
            settings=tuple(config["settings"]),
            training=Training(**training, optimizer=Optimizer(**described)),
            prune=Pruning(**config["prune"]) if config["prune"] else None,
            harden=modern(config)["harden"],
            engine=config["engine"],
            seeds=tuple(config["seeds"]),
            start_from=config["start_from"],
        )
    except UserError:
        raise
    except KeyError as error:
        raise UserError(f"a {CONFIG} without {error}", _WROTE, "train anew") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(f"a {CONFIG} that describes no run ({error})", _WROTE, "train anew") from None
