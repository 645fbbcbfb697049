"""How large and how fast: torch's dense weights against the pack, written and timed here and now."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.utils import _pytree as pytree

from fewer.core.engines.evaluate import predictor
from fewer.core.errors import UserError
from fewer.core.registry import system_of
from fewer.core.system import imported
from fewer.packs import VALUES, pack
from fewer.report.attacks import shortened
from fewer.run.load import Trained
from fewer.run.packing import carried_bytes, pack_run

__all__ = ["Sizes", "sizes_of"]

_SECONDS, _ROUNDS = 0.6, 40  # of timing, at most
_SAMPLES = 64


@dataclass(frozen=True)
class Sizes:
    """Bytes by how values are kept, and microseconds of one prediction; `why` says what could not be packed."""

    dense: int
    packed: dict[str, int]
    torch_us: float = float("nan")
    pack_us: float = float("nan")
    why: str = ""
    carried: int = 0  # bytes that `fewer pack` adds, such as a map

    @property
    def smaller(self) -> float:
        """How many times, lossless."""
        return self.dense / self.packed["float32"] if "float32" in self.packed else float("nan")

    @property
    def faster(self) -> float:
        """How many times, for one sample."""
        return self.torch_us / self.pack_us


def sizes_of(run: Trained) -> Sizes:
    """Pack it, round the pack, and time the lossless one; a prediction that cannot be packed is a row that says so."""
    run = dataclasses.replace(run, task=shortened(run.job.task, run.task, _SAMPLES))
    dense = sum(4 * p.numel() for name in _used(run) for p in run.modules[name].parameters())
    packed: dict[str, int] = {}
    why, times = "", (float("nan"), float("nan"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pack"
        try:
            packed["float32"] = pack_run(run, path, bare=True)
            exact = pack.load(path)
            times = _timed(run, exact)
            for kind in VALUES[1:]:
                packed[kind] = _rounded(exact, path, kind)
        except UserError as error:
            why = f"a pack: {error}"
    carried = _carried(run) if packed else 0
    return Sizes(dense, packed, *times, why, carried)


def _carried(run: Trained) -> int:
    own = system_of(run.job.task).carry
    return carried_bytes(imported(own)(run.task)) if own else 0


def _rounded(exact: pack.Pack, path: Path, kind: str) -> int:
    """Bytes of the same pack with rounded values: not traced again, and not calibrated, which hardly changes bytes."""
    programs = {name: network.program for name, network in exact.networks.items()}
    return pack.write(path, programs, exact.tensors(), masks=exact.masks, values=kind, settings=exact.settings)


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
    arrays = [np.asarray(leaf) for leaf in pytree.tree_leaves(given)]
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
