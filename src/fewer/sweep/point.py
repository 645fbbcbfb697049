"""One point of a grid: a training with one seed, named by the hash of everything that decides its result."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fewer.core.engines.base import check_device
from fewer.core.errors import UserError
from fewer.core.renamed import former_hardening
from fewer.core.settings import nearest
from fewer.pruning.recipe import dense
from fewer.run.job import Job
from fewer.run.load import job_from
from fewer.run.options import KEYS, job_of
from fewer.run.presets import expanded, text_of

__all__ = ["Point", "checked_key", "point_of"]

_GROUPS = ("set", "optimizer", "prune")  # tables of a grid file, each key a word
_SHORT = {"seeds": "seed", "start_from": "from"}  # what a grid calls them, one seed a point


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
        settings["harden"] = settings["harden"] and former_hardening(settings["harden"])
        text = json.dumps(settings, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    def _settings(self) -> dict[str, Any]:
        settings = self.job.config()
        del settings["threads"]
        settings["training"]["device"] = self.device
        return settings

    def to_json(self) -> dict[str, Any]:
        """As a file or a message holds it."""
        found: dict[str, Any] = json.loads(json.dumps({"name": self.name, "labels": self.labels, **self._settings()}))
        return found

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Point:
        """The same point again."""
        return Point(job_from(found), found["training"]["device"], found["labels"])

    def placed(self) -> Job:
        """The job on its device, which has to be there now."""
        return dataclasses.replace(self.job, training=dataclasses.replace(self.job.training, device=self.device))


def checked_key(key: str, where: str) -> str:
    """A key of a grid, or an error that names the nearest one; those inside a group are checked with the point."""
    group, dot, _ = key.partition(".")
    known = [_SHORT.get(word, word) for word in KEYS if word != "settings"]
    if (group in _GROUPS) if dot else (key in known):
        return key
    if not dot and key in _SHORT:
        return _SHORT[key]
    raise UserError(f"{key!r} in {where}", "what `fewer train` knows", nearest(key, [*known, "set"]))


def point_of(flat: Mapping[str, Any], labels: Mapping[str, Any]) -> Point:
    """A point from keys such as `task`, `set.network`, `optimizer.lr`; what is wrong is said before anything runs."""
    if "task" not in flat:
        raise UserError("a grid without a task", "its name", 'write task = "NAME" under [base]')
    words = dict(flat)
    task, device = str(words.pop("task")), str(words.pop("device", "cpu"))
    check_device(device)
    words["seeds"], words["start_from"] = words.pop("seed", 0), words.pop("from", None)
    own = [key for key in words if key.startswith("set.")]
    words["settings"] = [f"{key[4:]}={text_of(words.pop(key))}" for key in own]
    words = expanded(task, words)
    words["settings"] = sorted(words["settings"])  # a table has no order
    idle = _idle(words)
    job = job_of(task, {key: value for key, value in words.items() if key not in idle}, device=device)
    if len(job.seeds) > 1:
        raise UserError(f"seeds {flat['seed']} in one point", "one seed", "put seed under [axes]")
    shown = {key: value for key, value in labels.items() if key not in idle}
    return Point(job, device, {**shown, "seed": job.seeds[0]})


def _idle(words: Mapping[str, Any]) -> set[str]:
    """Words that mean nothing to a dense point: an axis of methods may have dense beside the sparsities of another."""
    if not dense(str(words.get("prune", ""))):
        return set()
    return {key for key in words if key.startswith("prune.") or (key == "sparsity" and "prune" in words)}
