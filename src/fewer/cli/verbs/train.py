"""`fewer train`: from a task to a finished run folder."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from fewer.attack.hardening import KINDS
from fewer.cli.show import Renamed
from fewer.cli.words import DEVICES, budgeted, numeric, offer
from fewer.core.engines import ENGINES, OPTIMIZERS, PRECISIONS
from fewer.core.errors import UserError
from fewer.core.registry import systems
from fewer.core.settings import either
from fewer.pruning.criteria import METHODS

EXAMPLES = """examples:
  fewer train vision --prune auto --sparsity 0.95 --out runs/small
  fewer train vision --set network=small-cnn --harden pgd:0.3 --prune lamp,when=gradual --out runs/robust
  fewer train vision --from runs/small --steps 500 --out runs/tuned"""


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    offer(parser.add_argument("task", help="a task's name, or module:Class for your own"), systems)
    parser.add_argument("--out", required=True, help="run folder; the same command goes on where it was killed")
    preset = parser.add_argument(
        "--preset", metavar="NAME", help="words under one name, such as a paper's; `fewer tasks TASK` lists them"
    )
    offer(preset, sorted({name for system in systems().values() for name in system.presets}))
    parser.add_argument("--set", dest="settings", action="append", metavar="KEY=VALUE", help="a task setting")
    offer(parser.add_argument("--prune", metavar="METHOD[,KEY=VALUE...]", help=either(METHODS)), METHODS)
    numeric(parser.add_argument("--sparsity", help="share of the prunable weights to remove (default 0.9)"))
    for name, what in (("--only", "prune these parameters alone"), ("--skip", "leave these whole")):
        parser.add_argument(name, action="append", metavar="PATTERN", help=f"{what}, such as 'encoder.*' or head")
    harden = parser.add_argument(
        "--harden", metavar="KIND:BUDGET", help=f"adversarial training, such as pgd:0.3: {either(KINDS)}"
    )
    offer(harden, budgeted(KINDS))
    parser.add_argument("--from", dest="start_from", metavar="RUN", help="start from a finished run's weights and mask")
    numeric(parser.add_argument("--seeds", help="0, 0-4 or 0,3,7; several train as a cohort (default 0)"))
    offer(parser.add_argument("--engine", help=f"{either(ENGINES)} (default auto)"), ENGINES)
    offer(parser.add_argument("--device", help=f"{either(DEVICES)} (default cpu)"), DEVICES)
    numeric(parser.add_argument("--steps", help="updates (default: the task's own)"))
    numeric(parser.add_argument("--batch"))
    numeric(parser.add_argument("--lr", help="learning rate, of the optimizer"))
    optimizer = parser.add_argument(
        "--optimizer", metavar="KIND[,KEY=VALUE...]", help=f"{either(OPTIMIZERS)}, such as adam,lr=1e-3,decay_from=0.5"
    )
    offer(optimizer, OPTIMIZERS)
    offer(parser.add_argument("--precision", help=either(PRECISIONS)), PRECISIONS)
    numeric(
        parser.add_argument(
            "--validate-every", metavar="STEPS", help="validate that often and end with the best weights"
        )
    )
    parser.add_argument("--choose-every", dest="validate_every", action=Renamed, help=argparse.SUPPRESS)
    numeric(parser.add_argument("--patience", metavar="VALIDATIONS", help="stop after that many without improvement"))
    parser.add_argument(
        "--compile", action="store_true", default=None, help="torch.compile on CUDA: minutes, then fast"
    )
    parser.add_argument("--threads", type=int, help="CPU threads; the bits depend on it")
    offer(
        parser.add_argument("--log", metavar="TOOL", help="tensorboard: event files in the run folder"), ["tensorboard"]
    )


def run(arguments: argparse.Namespace) -> None:
    """Train, speak, print the metrics."""
    from fewer.cli.show import progress, show
    from fewer.cli.verbs.report import members
    from fewer.core.engines.loop import Loop
    from fewer.core.files.run_folder import Folder
    from fewer.pruning.reach import count
    from fewer.run.diagnostics import signs
    from fewer.run.load import load
    from fewer.run.options import KEYS, job_of, tell_if_worse
    from fewer.run.tensorboard import watching

    if arguments.threads is not None:
        set_threads(arguments.threads)
    job = job_of(arguments.task, {word: getattr(arguments, word) for word in KEYS if word != "task"})
    tell_if_worse(job)
    rank = int(os.environ.get("RANK", "0"))  # under torchrun only the first process speaks
    if arguments.log and job.prune is not None and job.prune.when == "rounds":
        raise UserError("--log with when=rounds, many trainings in one", "a single training", "leave --log out")
    ended = Folder(arguments.out).finished
    with (
        watching(arguments.log if rank == 0 else None) as watch,
        progress(job.training.steps, f"train {job.task}", arguments.json or rank > 0) as log,
    ):
        ticks: list[dict[str, Any]] = []

        def tick(line: dict[str, Any]) -> None:
            ticks[:] = [line]
            log(line)

        loop = Loop(on_log=log, on_tick=tick, watch=watch)
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            from fewer.run.distributed import train_distributed

            found = train_distributed(job, arguments.out, loop=loop)
        else:
            found = job.run(arguments.out, loop=loop)
        if watch is not None and found is not None and not ended:
            watch.finish(arguments.out, job.seeds, found, job.training.steps)
    if found is None:
        return
    runs = [load(path) for path in members(Path(arguments.out))]
    left = [count(run.task, run.modules, run.mask).metrics() for run in runs]
    if len(left) == len(found):
        found = [{**metrics, **weights} for metrics, weights in zip(found, left)]
    speed = {"steps_per_second": ticks[-1]["steps_per_second"]} if ticks else {}
    show({"out": arguments.out, **summary(found), **speed}, arguments.json)
    for run in runs if job.harden else ():
        for sentence in signs(run):
            print(f"fewer: {run.path}: {sentence}", file=sys.stderr)


def set_threads(count: int) -> None:
    """Of this process; the bits depend on it."""
    import torch

    if count < 1:
        raise UserError(f"--threads {count}", "at least 1")
    torch.set_num_threads(count)


def summary(found: list[dict[str, float]]) -> dict[str, object]:
    """One run's metrics, or mean and values of several."""
    if len(found) == 1:
        return dict(found[0])
    return {
        name: {"mean": sum(f[name] for f in found) / len(found), "each": [round(f[name], 6) for f in found]}
        for name in found[0]
    }
