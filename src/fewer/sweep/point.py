"""One point of a grid: a training with one seed, named by the hash of everything that decides its result."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fewer.attack.hardening.recipe import harden_text
from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.errors import UserError
from fewer.core.registry import task_class
from fewer.core.settings import from_text, nearest
from fewer.pruning.pruning import Pruning
from fewer.pruning.recipe import parse_prune
from fewer.run.job import Job
from fewer.run.load import job_from

__all__ = ["KEYS", "Point", "checked_key", "point_of"]

KEYS = ("task", "seed", "steps", "batch", "precision", "device", "engine", "prune", "sparsity", "harden", "from")
_GROUPS = {"optimizer": Optimizer, "prune": Pruning}


@dataclass(frozen=True)
class Point:
    """`device` lies beside the job, whose own is the CPU: a grid may be planned where there is no GPU."""

    job: Job
    device: str = "cpu"
    labels: Mapping[str, Any] = field(default_factory=dict)  # what tells it from its neighbours in the grid

    @property
    def name(self) -> str:
        """Twelve hexadecimal digits: equal settings, equal names."""
        settings = self._settings()
        # spelt as version 0.1.0 did, so that a sweep begun then goes on
        settings["training"]["choose_every"] = settings["training"].pop("validate_every")
        text = json.dumps(settings, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    def _settings(self) -> dict[str, Any]:
        settings = self.job.config()
        del settings["threads"]
        settings["training"]["device"] = self.device
        return settings

    def to_json(self) -> dict[str, Any]:
        """As a file or a message holds it."""
        return {"name": self.name, "labels": dict(self.labels), **self._settings()}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Point:
        """The same point again."""
        return Point(job_from(found), found["training"]["device"], found["labels"])

    def placed(self) -> Job:
        """The job on its device, which has to be there now."""
        return dataclasses.replace(self.job, training=dataclasses.replace(self.job.training, device=self.device))


def checked_key(key: str, where: str) -> str:
    """A key of a grid, or an error that names the nearest one."""
    group, dot, name = key.partition(".")
    if not dot and key in KEYS:
        return key
    if dot and group == "set":
        return key  # known only to the task, which checks it when the point is made
    if dot and group in _GROUPS:
        names = [entry.name for entry in dataclasses.fields(_GROUPS[group])]
        if name in names:
            return key
        raise UserError(f"{key!r} in {where}", f"a setting of {group}", nearest(name, names))
    raise UserError(f"{key!r} in {where}", "what `fewer train` knows", nearest(key, [*KEYS, "set", "optimizer"]))


def point_of(flat: Mapping[str, Any], labels: Mapping[str, Any]) -> Point:
    """A point from keys such as `task`, `set.network`, `optimizer.lr`; what is wrong is said before anything runs."""
    if "task" not in flat:
        raise UserError("a grid without a task", "its name", 'write task = "NAME" under [base]')
    kind, settings = task_class(str(flat["task"]))
    words = tuple(sorted(f"{key[4:]}={_text(value)}" for key, value in flat.items() if key.startswith("set.")))
    if settings is not None:
        from_text(settings, words)
    elif words:
        raise UserError(f"setting {words[0]}", f"no settings: {flat['task']} has none", "leave it out")
    job = Job(
        task=str(flat["task"]),
        settings=words,
        training=_training(flat, kind.recommended),
        prune=_pruning(flat),
        harden=harden_text(str(flat.get("harden", ""))),
        engine=str(flat.get("engine", "auto")),
        seeds=(_whole(flat.get("seed", 0), "seed"),),
        start_from=str(flat["from"]) if flat.get("from") else None,
    )
    shown = {key: value for key, value in labels.items() if job.prune is not None or not _of_pruning(key)}
    return Point(job, str(flat.get("device", "cpu")), {**shown, "seed": job.seeds[0]})


def _of_pruning(key: str) -> bool:
    return key == "sparsity" or key.startswith("prune.")


def _training(flat: Mapping[str, Any], recommended: Mapping[str, Any]) -> Training:
    options = dict(recommended)
    for key in ("steps", "batch"):
        if key in flat:
            options[key] = _whole(flat[key], key)
    if "precision" in flat:
        options["precision"] = str(flat["precision"])
    changes = {key.partition(".")[2]: _text(value) for key, value in flat.items() if key.startswith("optimizer.")}
    if changes:
        options["optimizer"] = from_text(Optimizer, changes, options.get("optimizer"))
    return Training(**options)


def _pruning(flat: Mapping[str, Any]) -> Pruning | None:
    more = [f"{key[6:]}={_text(value)}" for key, value in flat.items() if key.startswith("prune.")]
    if "sparsity" in flat:
        more.append(f"sparsity={_text(flat['sparsity'])}")
    return parse_prune(str(flat.get("prune", "")), more)


def _whole(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UserError(f"{key} = {value!r}", "a whole number")
    return value


def _text(value: Any) -> str:
    """A value of TOML as the command line spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(_text(part) for part in value) if isinstance(value, list) else str(value)
