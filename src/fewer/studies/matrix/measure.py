"""What the matrix measures of a finished run: quality, quality under attack, and the pack's size and latency."""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from fewer.attack.audit import attacked
from fewer.core.engines.evaluate import evaluate
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically
from fewer.core.mask import dense, kept
from fewer.packs import pack
from fewer.packs.runtime.chain import kernels
from fewer.report.groups import HalfInterval
from fewer.run.load import Trained, load
from fewer.run.packing import pack_run
from fewer.studies.matrix.cases import Case
from fewer.sweep.run import Sweep

__all__ = ["Asked", "measure", "measure_all", "spelled"]

_CALLS = 15


def spelled(found: HalfInterval) -> str:
    """As a table shows it."""
    mean, half = found
    if not math.isfinite(mean):
        return "-"
    return f"{mean:.4g} ± {half:.2g}" if math.isfinite(half) else f"{mean:.4g}"


@dataclass(frozen=True)
class Asked:
    """A finished run, what to measure of it, and where that is kept."""

    folder: Path
    attack: str  # empty: none
    metric: str  # empty: the task's first
    packed: bool  # size and latency too
    cache: Path

    @classmethod
    def of(cls, sweep: Sweep, name: str, case: Case, scale: str = "quick", *, packed: bool) -> Asked:
        """A point of a sweep."""
        cache = sweep.out / "measured" / f"{name}.json"
        attack = case.attack if scale in case.attacked_at else ""
        return cls(sweep.results.folder(name).path, attack, case.metric, packed, cache)


def measure_all(asked: Sequence[Asked], *, processes: int) -> list[dict[str, Any]]:
    """Everything asked, several at a time."""
    if processes < 2:
        return [measure(each) for each in asked]
    with ProcessPoolExecutor(processes, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        return list(pool.map(measure, asked))


def measure(asked: Asked) -> dict[str, Any]:
    """All measures of a run, found again if they were taken before."""
    if asked.cache.exists():
        return dict(json.loads(asked.cache.read_text()))
    run = load(asked.folder)
    weights = kept(dense(run.modules))
    name = asked.metric or next(iter(run.metrics))
    found: dict[str, Any] = {
        "figure": name, "quality": run.metrics[name],
        "attacked": _under_attack(run, asked.attack)[name] if asked.attack else None,
        "weights": weights, "kept": kept(run.mask) if run.mask else weights,
    }  # fmt: skip
    if asked.packed:
        found |= _packed(run)
    asked.cache.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(asked.cache, (json.dumps(found) + "\n").encode())
    return found


def _under_attack(run: Trained, attack: str) -> dict[str, float]:
    """The metrics, every batch attacked first."""
    modules = {name: module.requires_grad_(True) for name, module in run.modules.items()}
    nets = NetworkSet(modules, training=False)
    return evaluate(run.task, attacked(run.task, nets, attack, seed=run.job.seeds[0]))


def _packed(run: Trained) -> dict[str, Any]:
    """Bytes of the pack, and milliseconds for one sample; a prediction that cannot be packed says why."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pack"
        try:
            size = pack_run(run, path)
        except UserError as error:
            return {"pack_bytes": None, "latency_ms": None, "not_packed": str(error)}
        model = pack.load(path)
    if kernels is None:  # a machine without a compiler says nothing about a pack's speed
        return {"pack_bytes": size, "latency_ms": None}
    sample = run.task.inputs(run.task.data("test").take(torch.arange(1)))
    arrays = [np.asarray(leaf) for leaf in pytree.tree_leaves(sample)]
    times = []
    for _ in range(_CALLS):
        begin = time.perf_counter()
        model.predict(*arrays)
        times.append(time.perf_counter() - begin)
    return {"pack_bytes": size, "latency_ms": 1e3 * statistics.median(times)}
