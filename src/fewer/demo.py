"""The demonstration: train, prune, harden, attack, pack and report, on embedded data alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from fewer.core.engine import Training
from fewer.core.optimizer import Optimizer
from fewer.core.train import Loop
from fewer.core.whole import write_whole
from fewer.job import Job, load
from fewer.packing import pack_run
from fewer.prune.pruning import Pruning
from fewer.report.page import Page, table, words
from fewer.report.runs import page_of

__all__ = ["demo"]

Bar = Callable[[int, str], AbstractContextManager[Callable[[dict[str, Any]], None]]]
_ATTACKS = {"vision": ("fgsm:0.1", "pgd:0.1,steps=20,step=0.01"), "cellfree": ("pgd:1,steps=10",)}


def jobs() -> dict[str, Job]:
    """Digits by a fully connected network: dense, with 95 % removed before training, and hardened while pruned.

    Access points for phones: with 90 % of the weights removed on the way.
    """
    network = ("network=mlp",)
    short = Training(steps=600, batch=128, optimizer=Optimizer(lr=2e-3, decay_from=0.5))
    return {
        "dense": Job("vision", network, short),
        "snip95": Job("vision", network, short, prune=Pruning("snip", 0.95)),
        "hardened90": Job(
            "vision", network, short, harden="pgd:0.1,steps=5",
            prune=Pruning("magnitude", 0.9, scope="global", when="gradual"),
        ),
        "cellfree90": Job(
            "cellfree", (), Training(steps=1500, batch=100), prune=Pruning("magnitude", 0.9, when="gradual")
        ),
    }  # fmt: skip


def demo(out: Path, bar: Bar) -> Path:
    """Run everything into `out`; a second call goes on where the first was stopped. The report's path."""
    runs = []
    for name, job in jobs().items():
        with bar(job.training.steps, name) as speak:
            job.run(out / name, loop=Loop(on_log=speak))
        runs.append(load(out / name))
    page = Page("fewer: the same job with fewer weights", "Everything below was trained and measured on this machine.")
    for task, attacks in _ATTACKS.items():
        part = page_of([run for run in runs if run.job.task == task], task, attacks, limit=300)
        page.sections += [(f"{task}: {heading}", content) for heading, content in part.sections]
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
