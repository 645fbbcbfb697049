"""What the matrix measures of a finished run: quality, quality under attack, and the pack's size and latency."""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewer.attack.audit import attacked
from fewer.core.errors import UserError
from fewer.core.evaluate import evaluate
from fewer.core.mask import dense, kept
from fewer.core.nets import NetworkSet
from fewer.core.whole import write_whole
from fewer.job import Trained, load
from fewer.packing import pack_run
from fewer.report.groups import Interval
from fewer.sparse import pack

__all__ = ["measure", "spelled"]

_CALLS = 15


def spelled(found: Interval) -> str:
    """As a table shows it."""
    mean, half = found
    if not math.isfinite(mean):
        return "-"
    return f"{mean:.4g} ± {half:.2g}" if math.isfinite(half) else f"{mean:.4g}"


def measure(folder: Path, attack: str, *, packed: bool, cache: Path) -> dict[str, Any]:
    """All measures of a run, found again in `cache` if they were taken before; `packed` adds size and latency."""
    if cache.exists():
        return dict(json.loads(cache.read_text()))
    run = load(folder)
    weights = kept(dense(run.modules))
    name, quality = next(iter(run.figures.items()))
    found: dict[str, Any] = {
        "figure": name, "quality": quality, "attacked": _under_attack(run, attack), "weights": weights,
        "kept": kept(run.mask) if run.mask else weights,
    }  # fmt: skip
    if packed:
        found |= _packed(run)
    cache.parent.mkdir(parents=True, exist_ok=True)
    write_whole(cache, (json.dumps(found) + "\n").encode())
    return found


def _under_attack(run: Trained, attack: str) -> float:
    """The same figure, every batch attacked first."""
    modules = {name: module.requires_grad_(True) for name, module in run.modules.items()}
    nets = NetworkSet(modules, training=False)
    return next(iter(evaluate(run.task, attacked(run.task, nets, attack, seed=run.job.seeds[0])).values()))


def _packed(run: Trained) -> dict[str, Any]:
    """Bytes of the pack, and milliseconds for one sample; a prediction that cannot be packed says why."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pack"
        try:
            size = pack_run(run, path)
        except UserError as error:
            return {"pack_bytes": None, "latency_ms": None, "not_packed": str(error)}
        model = pack.load(path)
    sample = run.task.inputs(run.task.data("test").take(torch.arange(1)))
    arrays = [np.asarray(leaf) for leaf in ([sample] if isinstance(sample, torch.Tensor) else _leaves(sample))]
    times = []
    for _ in range(_CALLS):
        begin = time.perf_counter()
        model.predict(*arrays)
        times.append(time.perf_counter() - begin)
    return {"pack_bytes": size, "latency_ms": 1e3 * statistics.median(times)}


def _leaves(inputs: Any) -> list[Any]:
    return list(inputs.values()) if isinstance(inputs, dict) else list(inputs)
