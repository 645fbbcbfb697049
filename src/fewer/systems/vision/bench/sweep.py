"""A grid of small networks as cohorts against the same points one by one with the plain engine, start to finish."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from fewer.bench.row import Row
from fewer.sweep.grid import grid_of
from fewer.sweep.run import Sweep, Where

__all__ = ["run"]

REQUIRED = 20.0  # on CUDA


def _grid(device: str, engine: str, seeds: int, steps: int) -> dict[str, Any]:
    return {
        "base": {"task": "vision", "steps": steps, "batch": 128, "device": device, "engine": engine,
                 "set": {"network": "mlp"}},
        "axes": {"prune": ["dense", "random", "magnitude", "snip"], "sparsity": [0.5, 0.7, 0.8],
                 "seed": list(range(seeds))},
        "resources": {"cohort": 128},
    }  # fmt: skip


def run(quick: bool = False) -> list[Row]:
    """One row: seconds of the whole grid, reading, pruning, evaluating and writing included, in this process."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    steps = (500 if quick else 2000) if device == "cuda" else 20
    seeds, sample = (12, 6) if device == "cuda" else (1, 10)
    _seconds(_grid(device, "plain", 1, 5), 1)  # the first use of a device and of the data
    cohorts, points = _seconds(_grid(device, "cohort", seeds, steps), None)
    alone, tried = _seconds(_grid(device, "plain", seeds, steps), sample)
    theirs = alone / tried * points
    against = f"plain engine, one by one, {tried} of the points timed"
    if device == "cpu":
        against += "; the bar is for CUDA"
    what = f"{points} pruned MLPs x {steps} steps, {device}"
    return [Row(what, cohorts, theirs, "s", theirs / cohorts, against, REQUIRED if device == "cuda" else None)]


def _seconds(content: dict[str, Any], most: int | None) -> tuple[float, int]:
    """Wall time and number of points; `most` takes evenly spaced ones only."""
    grid = grid_of(content)
    if most is not None and most < len(grid.points):
        picked = [grid.points[index * len(grid.points) // most] for index in range(most)]
        grid = type(grid)(tuple(picked), grid.resources)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        rows = Sweep(grid, Path(folder) / "sweep", Where("inline")).run()
        seconds = time.perf_counter() - begin
    failed = [row["why"] for row in rows if row["status"] != "done"]
    if failed:
        raise RuntimeError(f"{len(failed)} points failed: {failed[0]}")
    return seconds, len(rows)
