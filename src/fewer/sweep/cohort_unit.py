"""Points in lock-step: a cohort whose replicas differ in seed, mask and learning rate, and fail alone."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.evaluate import evaluate_cohort
from fewer.core.engines.loop import Loop, diverged_, fit, not_finite, save_results
from fewer.core.errors import Diverged, UserError
from fewer.core.files import checkpoint
from fewer.core.files.run_folder import CONFIG, METRICS, Folder
from fewer.core.task import Task
from fewer.pruning.schedules.gradual import events_for
from fewer.run.beginning import restore_or_prune_
from fewer.run.job import Job
from fewer.sweep.failure import Failure, failure_of

__all__ = ["NotBatchable", "Rates", "run_together", "shared"]

# On a CPU lock-step saves Python's time only, which large products make small: measured 1.1 to 3 times below this
# many weights x samples of a step, and next to nothing above.
_WORK = 10_000_000


class NotBatchable(Exception):
    """These points have to be trained one by one; says why."""


class Rates(Cohort):
    """A cohort in which each replica has the learning rate of its own job."""

    def __init__(self, task: Task[Any], trainings: Sequence[Training], seeds: Sequence[int]) -> None:
        super().__init__(task, trainings[0], seeds)
        rates = [training.optimizer.lr / trainings[0].optimizer.lr for training in trainings]
        self.scales: Tensor | None = None  # all alike: the optimiser's fused rule takes a scalar
        if len(set(rates)) > 1:
            self.scales = torch.tensor(rates, dtype=torch.float64, device=self.device)[:, None]

    def rate(self, index: int, turn: Tensor, total: int) -> Tensor:
        """Of the run's optimiser by replica; an objective with its own optimiser keeps that one's."""
        common = super().rate(index, turn, total)
        own = self.objectives[index].optimizer is not None
        return common if own or self.scales is None else common * self.scales


def shared(job: Job) -> str | None:
    """What points must have in common to be one cohort; None: always alone."""
    prune = job.prune
    training = job.training
    if job.engine not in ("auto", "cohort") or job.start_from or training.precision == "bfloat16" or training.compile:
        return None
    if prune is not None and prune.when == "rounds":
        return None
    settings = dataclasses.asdict(job)
    settings["seeds"], settings["training"]["optimizer"]["lr"] = None, None
    settings["prune"] = (prune.only, prune.skip) if prune is not None and (prune.only or prune.skip) else None
    return json.dumps(settings, sort_keys=True)


def run_together(jobs: Mapping[str, Job], folder: Folder, points: Path, loop: Loop) -> dict[str, Failure | None]:
    """Train the jobs as one cohort in `folder`, leave a finished run of each in `points/NAME`; what became of each.

    The folder can go once somebody has noted what is returned: until then a kill costs no training.
    """
    with folder.locked():
        # all of one cohort have the same settings, and so the same files
        made = next(iter(jobs.values())).made_with()
        folder.claim({"points": {name: job.config() for name, job in jobs.items()}}, made)
        engine = _engine(list(jobs.values()))
        dead = _begin_(engine, list(jobs.values()), folder)
        if len(dead) < len(jobs):
            prunings = [None if replica in dead else job.prune for replica, job in enumerate(jobs.values())]
            events = events_for(prunings, engine.training.steps)
            try:
                fit(engine, folder, events=events, loop=loop)
            except Diverged as error:
                return dict.fromkeys(jobs, failure_of(error)) | _by_name(jobs, dead)
            except UserError as error:
                raise NotBatchable(failure_of(error).why) from None  # one replica's pruning was refused on the way
            # all that follows can be done again from here
            checkpoint.save(engine, folder)
            for replica in diverged_(engine):
                dead.setdefault(replica, failure_of(not_finite(engine.count)))
            _write(engine, jobs, dead, folder, points)
    return dict.fromkeys(jobs) | _by_name(jobs, dead)


def _by_name(jobs: Mapping[str, Job], dead: Mapping[int, Failure]) -> dict[str, Failure | None]:
    names = list(jobs)
    return {names[replica]: failure for replica, failure in dead.items()}


def _engine(jobs: Sequence[Job]) -> Rates:
    task, training = jobs[0].make_task(), jobs[0].training
    if not task.data("train").in_memory:
        raise NotBatchable("data read from disk in one order for all")
    for job in jobs:
        try:
            job.check(task)
        except UserError as error:
            raise NotBatchable(str(error)) from None
    if training.device == "cpu" and jobs[0].engine == "auto":
        weights = sum(weight.numel() for module in task.networks().values() for weight in module.parameters())
        if weights * training.batch > _WORK:
            raise NotBatchable(f"{weights} weights x {training.batch} samples: lock-step does not pay on a CPU")
    return Rates(task, [job.training for job in jobs], [job.seeds[0] for job in jobs])


def _begin_(engine: Rates, jobs: Sequence[Job], folder: Folder) -> dict[int, Failure]:
    """Restore or prune. A replica that cannot be pruned goes on unpruned and is not counted."""
    dead: dict[int, Failure] = {}

    def refused(replica: int, error: UserError) -> None:
        dead[replica] = failure_of(error)

    if restore_or_prune_(engine, folder, [job.prune for job in jobs], refused=refused):
        found = folder.read_json("refused.json") if (folder.path / "refused.json").exists() else {}
        return {int(replica): Failure(**failure) for replica, failure in found.items()}
    folder.write_json("refused.json", {str(replica): dataclasses.asdict(found) for replica, found in dead.items()})
    return dead


def _write(engine: Rates, jobs: Mapping[str, Job], dead: Mapping[int, Failure], folder: Folder, points: Path) -> None:
    metrics = evaluate_cohort(engine.task, engine.state)
    for found, step in zip(metrics, engine.chosen):
        found["chosen_step"] = step
    lines, made = folder.lines(), folder.versions()
    for replica, (name, job) in enumerate(jobs.items()):
        part = Folder(points / name)
        if replica in dead or part.finished:
            continue
        part.prepare()
        part.write_json(CONFIG, {**job.config(), "cohort": list(jobs), "versions": made})
        own = [{key: value[replica] if isinstance(value, list) else value for key, value in line.items()}
               for line in lines]  # fmt: skip
        part.write_lines(own)
        save_results(engine, replica, part)
        part.write_json(METRICS, metrics[replica])  # last: its presence means finished
