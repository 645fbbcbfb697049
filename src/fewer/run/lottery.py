"""A lottery ticket as a run: train, prune the smallest, reset to the first weights, until the sparsity is reached."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fewer.core.files.run_folder import MASK, METRICS, WEIGHTS, Folder
from fewer.pruning.pruning import Pruning
from fewer.pruning.schedules.lottery import Lottery, lottery

if TYPE_CHECKING:
    from fewer.run.job import Job

__all__ = ["run_rounds", "tickets"]


def tickets(pruning: Pruning) -> Lottery:
    """As many rounds as `rate` needs for the sparsity, at the even rate that ends exactly there."""
    rounds = max(1, math.ceil(math.log(1 - pruning.sparsity) / math.log(1 - pruning.rate) - 1e-9))
    rate = 1 - (1 - pruning.sparsity) ** (1 / rounds)
    scope = "layer" if pruning.scope in ("layer", "erk") else "global"
    return Lottery(rounds=rounds, rate=rate, scope=scope, starts=("reset",))


def run_rounds(job: Job, folder: Folder) -> dict[str, float]:
    """Play the rounds in `folder/rounds`, where finished ones are found again; the last is the run's result."""
    assert job.prune is not None
    seed, settings = job.seeds[0], tickets(job.prune)
    out, task = folder.rounds(), job.make_task()
    job.check(task)
    rows = lottery(task, job.training, settings, seeds=(seed,), out=out, about={"harden": job.harden})
    last = Folder(out / f"round-{settings.rounds:02d}")
    folder.write_tensors(WEIGHTS, last.read_tensors(f"reset-seed{seed}.safetensors"))
    masks = Folder(out / f"round-{settings.rounds - 1:02d}").read_tensors("next_mask.safetensors")
    folder.write_tensors(MASK, {key.removeprefix(f"{seed}/"): mask for key, mask in masks.items()})
    apart = ("round", "start", "seed", "kept", "weights", "layers")
    metrics = {name: value for name, value in rows[-1].items() if name not in apart}
    folder.write_json(METRICS, metrics)
    return metrics
