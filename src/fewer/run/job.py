"""One training from a description to a finished run folder: what the command line, studies and sweeps all start.

This is the first module above the methods: it combines a task, hardening, pruning and an engine.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fewer.core.engines import ENGINES
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.evaluate import evaluate, evaluate_cohort, predictor
from fewer.core.engines.loop import Event, Loop, diverged_, fit, not_finite, save_results
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import check_finite, fill_, fresh_modules
from fewer.core.errors import Notice, UserError
from fewer.core.files import checkpoint
from fewer.core.files.fingerprints import check_unchanged, named_files
from fewer.core.files.run_folder import CONFIG, MASK, METRICS, WEIGHTS, Folder
from fewer.core.machine.versions import versions
from fewer.core.registry import make, systems
from fewer.core.task import Task
from fewer.pruning.pruning import Pruning, patterns
from fewer.pruning.reach import refuse_unreachable
from fewer.pruning.schedules.gradual import events_for
from fewer.run.beginning import restore_or_prune_
from fewer.run.lottery import run_rounds
from fewer.sparse.engine import sparse_engine, worthwhile

__all__ = ["Job"]


@dataclass(frozen=True)
class Job:
    """Everything that decides the result. Two equal jobs on one machine give the same bits."""

    task: str
    settings: tuple[str, ...] = ()  # key=value words
    training: Training = field(default_factory=Training)
    prune: Pruning | None = None
    harden: str | None = None
    engine: str = "auto"
    seeds: tuple[int, ...] = (0,)
    start_from: str | None = None

    def __post_init__(self) -> None:
        if self.start_from is not None and self.prune is not None and self.prune.when == "rounds":
            raise UserError("rounds from a trained run", "rounds from the first weights", "leave --from out")
        if self.engine not in ENGINES:
            raise UserError(f"engine {self.engine!r}", f"one of {', '.join(ENGINES)}")
        if (
            not self.seeds
            or len(set(self.seeds)) < len(self.seeds)
            or not 0 <= min(self.seeds) <= max(self.seeds) < 2**62
        ):
            raise UserError(f"seeds {self.seeds}", "different whole numbers from 0 to below 2^62", "--seeds 0-4")
        if self.training.validate_every and self.prune is not None and self.prune.when != "start":
            raise UserError(
                f"weights chosen by validation while {self.prune.when} pruning changes the mask", "when=start",
                "leave --validate-every out",
            )  # fmt: skip
        if self.training.compile and self._chosen() != "plain":
            raise UserError(f"compile with the {self._chosen()} engine", "one replica", "--engine plain")
        if self.training.precision == "bfloat16" and self._chosen() != "plain":
            raise UserError(f"bfloat16 with the {self._chosen()} engine", "float32 or float64", "or --engine plain")

    def config(self) -> dict[str, Any]:
        """As JSON holds it, with what the bits depend on beside the settings."""
        return {
            **dataclasses.asdict(self), "settings": list(self.settings), "seeds": list(self.seeds),
            "prune": None if self.prune is None else self.prune.described(), "threads": torch.get_num_threads(),
        }  # fmt: skip

    def made_with(self) -> dict[str, Any]:
        """Versions, and what is now in the files that the settings name."""
        return {**versions(), "files": named_files(self.settings)}

    def plain_task(self, changes: Sequence[str] = ()) -> Task[Any]:
        """The task with its settings, of which some may have changed, and with what pruning may touch of it."""
        task = make(self.task, (*self.settings, *changes))
        if self.prune is not None:
            task.only = patterns(self.prune.only) or task.only
            task.whole = (*task.whole, *patterns(self.prune.skip))
        return task

    def make_task(self) -> Task[Any]:
        """The task, hardened if so asked."""
        task = self.plain_task()
        if self.harden:
            from fewer.attack.hardening.harden import harden

            task = harden(task, self.harden, total=self.training.steps)
        return task

    def run(self, out: str | Path, *, loop: Loop | None = None) -> list[dict[str, float]]:
        """Train into `out` (or go on there, or just read the result if it is finished); metrics of each seed."""
        folder = Folder(out)
        with folder.locked():
            if not (fresh := folder.claim(self.config(), self.made_with())):
                check_unchanged(folder.versions().get("files", {}), self.settings, cure="choose another --out")
            if folder.finished:
                checkpoint.forget(folder)  # a kill may have come just before this
                return folder.metrics()
            try:
                return self._into(folder, loop)
            except UserError:
                if fresh:
                    folder.abandon()
                raise

    def _into(self, folder: Folder, loop: Loop | None) -> list[dict[str, float]]:
        in_rounds = self.prune is not None and self.prune.when == "rounds"
        if len(self.seeds) == 1:
            return [run_rounds(self, folder) if in_rounds else self._single(folder, loop)]
        if self._chosen() == "cohort" and not in_rounds and (engine := self._lockstep()) is not None:
            return self._cohort(engine, folder, loop)
        metrics = [
            figure
            for seed in self.seeds
            for figure in dataclasses.replace(self, seeds=(seed,)).run(folder.seed(seed).path, loop=loop)
        ]
        folder.write_json(METRICS, {"replicas": metrics})
        return metrics

    def _chosen(self) -> str:
        if self.engine != "auto":
            return self.engine
        return "cohort" if len(self.seeds) > 1 else "plain"

    def plain(self) -> type[Plain]:
        """The engine of one replica."""
        return Plain

    def build(self) -> Engine:
        """The engine before its first step, pruned if pruning comes first."""
        task = self.make_task()
        self.check(task)
        modules = None if self.start_from is None else [self._loaded(task, seed) for seed in self.seeds]
        engine: Engine
        if self._chosen() == "cohort":
            engine = Cohort(task, self.training, self.seeds, modules=modules)
        else:
            one = None if modules is None else modules[0]
            engine = self.plain()(task, self.training, self.seeds[0], modules=one)
        if self.start_from is not None:
            for replica, seed in enumerate(self.seeds):
                engine.state.mask_(replica, self._source(seed).read_networks(MASK))
        return engine

    def check(self, task: Task[Any]) -> None:
        """Refuse an optimiser that nothing would descend with, and a pruning that would touch nothing."""
        if self.prune is not None:
            refuse_unreachable(task, fresh_modules(task, self.seeds[0]))
        asked, own = self.training.optimizer, [objective.optimizer for objective in task.objectives()]
        if used := own[0] if None not in own and asked not in (*own, Optimizer()) else None:
            raise UserError(
                f"optimizer {asked.kind} with lr {asked.lr:g}",
                f"none: {self.task} descends with its own, {used.kind} with lr {used.lr:g}",
                "leave --optimizer out",
            )

    def events(self) -> list[Event]:
        """What happens during training."""
        return list(events_for([self.prune] * len(self.seeds), self.training.steps)) if self.prune else []

    def _loaded(self, task: Task[Any], seed: int) -> Mapping[str, nn.Module]:
        """This task's networks with another run's weights."""
        source = self._source(seed)
        source.refuse_unless_one_run()
        weights, modules = source.read_networks(WEIGHTS), fresh_modules(task, seed)
        for name, module in modules.items():
            fill_(module, weights.get(name, {}))
        check_finite(modules, str(source.path))
        return modules

    def _source(self, seed: int) -> Folder:
        """The run that this one starts from; of several seeds the same one."""
        whole = Folder(str(self.start_from))
        part = whole.seed(seed)
        return part if len(self.seeds) > 1 and part.path.exists() else whole

    def _train(self, engine: Engine, folder: Folder, loop: Loop | None) -> Engine:
        restore_or_prune_(engine, folder, [self.prune] * len(self.seeds))
        # decided by the mask that training starts with; a gradual one is another when a killed run goes on
        steady = self.prune is None or self.prune.when != "gradual"
        if self.engine == "sparse" or (self.engine == "auto" and steady and worthwhile(engine)):
            engine = sparse_engine(engine)
        engine.begin_()
        fit(engine, folder, events=self.events(), loop=loop)
        return engine

    def _single(self, folder: Folder, loop: Loop | None) -> dict[str, float]:
        engine = self._train(self.build(), folder, loop)
        save_results(engine, 0, folder)
        metrics = evaluate(engine.task, predictor(engine.task, engine.state.modules_of(0), self.seeds[0]))
        if engine.chosen:
            metrics["chosen_step"] = engine.chosen[0]
        folder.write_json(METRICS, metrics)
        checkpoint.forget(folder)
        return metrics

    def _lockstep(self) -> Engine | None:
        """The cohort; None where the losses of a user's task do not run as one and nobody insists."""
        engine = self.build()
        if self.task in systems() or not isinstance(engine, Cohort) or (why := engine.refusal()) is None:
            return engine
        if self.engine == "cohort":
            raise UserError(f"{self.task} in lock-step ({why})", "losses that vmap knows", "leave --engine out")
        warnings.warn(f"seeds train one by one, as lock-step does not know these losses ({why})", Notice, stacklevel=2)
        return None

    def _cohort(self, engine: Engine, folder: Folder, loop: Loop | None) -> list[dict[str, float]]:
        engine = self._train(engine, folder, loop)
        lost = diverged_(engine)
        metrics = evaluate_cohort(engine.task, engine.state)
        for found, step in zip(metrics, engine.chosen):
            found["chosen_step"] = step
        config = {**self.config(), "cohort": list(self.seeds), "versions": folder.versions()}
        for replica, seed in enumerate(self.seeds):
            if replica in lost:
                continue
            part = folder.seed(seed)
            part.prepare()
            part.write_json(CONFIG, {**config, "seeds": [seed]})
            save_results(engine, replica, part)
            part.write_json(METRICS, metrics[replica])
        if lost:
            apart = ", ".join(str(self.seeds[replica]) for replica in lost)
            raise not_finite(engine.count, f" (seed {apart}; the others are finished in {folder.path})")
        folder.write_json(METRICS, {"replicas": metrics})
        checkpoint.forget(folder)
        return metrics
