"""A job's seeds in lock-step on a GPU, as many updates as the job has by itself, whatever an update costs there."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fewer.core.engines.cohort import Cohort
from fewer.core.engines.evaluate import evaluate_cohort
from fewer.core.engines.loop import Loop, fit
from fewer.core.files import checkpoint
from fewer.core.files.run_folder import Folder
from fewer.pruning.schedules.gradual import events_for
from fewer.run.beginning import restore_or_prune_
from fewer.run.job import Job

__all__ = ["in_lockstep"]

_SAVE_SECONDS = 120.0  # a state of many large agents takes seconds to write


def in_lockstep(
    job: Job, out: Path, *, device: str, compile: bool, log: Callable[[str], None]
) -> list[dict[str, float]]:
    """Metrics of every seed; goes on after a kill. The job's own engine, a CPU's, is not asked."""
    begin, count = time.monotonic(), len(job.seeds)
    training = dataclasses.replace(job.training, device=device, compile=compile)
    engine, folder = Cohort(job.make_task(), training, job.seeds), Folder(out)
    folder.path.mkdir(parents=True, exist_ok=True)
    prunings = [job.prune] * count
    restore_or_prune_(engine, folder, prunings)
    engine.begin_()
    log(f"{out.name}: {count} agents, step {engine.count} of {training.steps} after {time.monotonic() - begin:.0f} s")
    loop = Loop(log_every=1000, save_seconds=_SAVE_SECONDS, on_log=_told(out.name, log, training.steps))
    fit(engine, folder, events=events_for(prunings, training.steps), loop=loop)
    found = evaluate_cohort(engine.task, engine.state)
    checkpoint.forget(folder)
    return found


def _told(name: str, log: Callable[[str], None], steps: int) -> Callable[[dict[str, Any]], None]:
    def tell(line: dict[str, Any]) -> None:
        if line["step"] % 10_000 == 0:
            log(f"{name}: step {line['step']} of {steps}")

    return tell
