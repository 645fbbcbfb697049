"""How large and how fast: torch's dense weights against the pack, written and timed here and now."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewer.core.errors import UserError
from fewer.core.evaluate import predictor
from fewer.job import Trained
from fewer.packing import pack_run
from fewer.sparse import pack

__all__ = ["KINDS", "Sizes", "sizes_of"]

KINDS = ("float32", "float16", "int8")
_SECONDS, _ROUNDS = 0.6, 40  # of timing, at most


@dataclass(frozen=True)
class Sizes:
    """Bytes by how values are kept, and microseconds of one prediction; `why` says what could not be packed."""

    dense: int
    packed: dict[str, int]
    torch_us: float = float("nan")
    pack_us: float = float("nan")
    why: str = ""

    @property
    def smaller(self) -> float:
        """How many times, lossless."""
        return self.dense / self.packed["float32"] if "float32" in self.packed else float("nan")

    @property
    def faster(self) -> float:
        """How many times, for one sample."""
        return self.torch_us / self.pack_us


def sizes_of(run: Trained) -> Sizes:
    """Pack it three ways and time the lossless one; a prediction that cannot be packed is one row that says so."""
    dense = sum(4 * p.numel() for name in _used(run) for p in run.modules[name].parameters())
    packed: dict[str, int] = {}
    why, times = "", (float("nan"), float("nan"))
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            try:
                packed[kind] = pack_run(run, Path(folder) / kind, kind)
            except UserError as error:
                why = f"{kind}: {error}"
        if "float32" in packed:
            times = _timed(run, pack.load(Path(folder) / "float32"))
    return Sizes(dense, packed, *times, why)


def _used(run: Trained) -> list[str]:
    """Networks that a prediction calls: a critic helps to learn and is left behind."""
    called: set[str] = set()
    hooks = [
        part.register_forward_pre_hook(lambda _, __, name=name: called.add(name))
        for name, module in run.modules.items()
        for part in module.modules()
    ]
    try:
        predictor(run.task, run.modules)(run.task.data("train").take(torch.arange(2)))
    finally:
        for hook in hooks:
            hook.remove()
    return [name for name in run.modules if name in called]


def _timed(run: Trained, packed: pack.Pack) -> tuple[float, float]:
    """Microseconds of one sample by torch and by the pack, medians of calls taken in turns."""
    batch = run.task.data("train").take(torch.arange(1))
    predict, given = predictor(run.task, run.modules), run.task.inputs(batch)
    leaves = [given] if isinstance(given, torch.Tensor) else _leaves(given)
    arrays = [np.asarray(leaf) for leaf in leaves]
    calls: tuple[Callable[[], object], ...] = (lambda: predict(batch), lambda: packed.predict(*arrays))
    for call in calls:
        call()
    seconds: tuple[list[float], list[float]] = ([], [])
    begin = time.perf_counter()
    while len(seconds[0]) < _ROUNDS and (len(seconds[0]) < 3 or time.perf_counter() - begin < _SECONDS):
        for call, taken in zip(calls, seconds):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return 1e6 * statistics.median(seconds[0]), 1e6 * statistics.median(seconds[1])


def _leaves(inputs: Any) -> list[Any]:
    return list(inputs.values()) if isinstance(inputs, dict) else list(inputs)
