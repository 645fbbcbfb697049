"""The demonstration: train, prune, harden, attack, pack and report, on embedded data alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from fewer.core.engine import Training
from fewer.core.folder import write_whole
from fewer.core.optimizer import Optimizer
from fewer.core.train import Loop
from fewer.job import Job, load
from fewer.packing import pack_run
from fewer.prune.pruning import Pruning
from fewer.report.page import table, words
from fewer.report.runs import page_of

__all__ = ["demo"]

Bar = Callable[[int, str], AbstractContextManager[Callable[[dict[str, Any]], None]]]
_ATTACKS = ("fgsm:0.1", "pgd:0.1,steps=20,step=0.01")


def jobs() -> dict[str, Job]:
    """Digits by a fully connected network: dense, with 95 % removed before training, and hardened while pruned."""
    network = ("network=mlp",)
    short = Training(steps=600, batch=128, optimizer=Optimizer(lr=2e-3, decay_from=0.5))
    return {
        "dense": Job("vision", network, short),
        "snip95": Job("vision", network, short, prune=Pruning("snip", 0.95)),
        "hardened90": Job(
            "vision", network, short, harden="pgd:0.1,steps=5",
            prune=Pruning("magnitude", 0.9, scope="global", when="gradual"),
        ),
    }  # fmt: skip


def demo(out: Path, bar: Bar) -> Path:
    """Run everything into `out`; a second call goes on where the first was stopped. The report's path."""
    runs = []
    for name, job in jobs().items():
        with bar(job.training.steps, name) as speak:
            job.run(out / name, loop=Loop(on_log=speak))
        runs.append(load(out / name))
    page = page_of(runs, "fewer: the same job with fewer weights", _ATTACKS, limit=300)
    rows = []
    for run in runs:
        size = pack_run(run, out / f"{run.path.name}.pack")
        dense = sum(4 * p.numel() for module in run.modules.values() for p in module.parameters())
        rows.append([run.path.name, dense, size, dense / size])
    page.add(
        "Packed",
        words("Bytes of the weights as float32, bytes of the lossless pack with everything needed to run it."),
        table(["run", "dense bytes", "pack bytes", "times smaller"], rows),
    )
    write_whole(out / "report.html", page.html().encode())
    return (out / "report.html").resolve()
