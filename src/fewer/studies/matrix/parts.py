"""Parts of the matrix: each a sweep of its own, measured, and kept as one small file that the whole is made from.

A GPU is often lent for minutes only, and runs are large: `fewer reproduce matrix --scale full --pieces vision-criteria
--out DIR` leaves `DIR/matrix-full/vision-criteria.json`, which is all that has to be brought home.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from fewer.core.files.atomic import write_json
from fewer.core.settings import from_text
from fewer.studies.matrix.cases import SPARSITIES, Case, cases, grid, size_of
from fewer.studies.matrix.measure import Asked, measure_all
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces
from fewer.studies.study import hardware, in_words
from fewer.sweep.grid import grid_of
from fewer.sweep.point import Point
from fewer.sweep.report import Done, Report
from fewer.sweep.run import Sweep, Where

__all__ = ["HALF", "WHERE", "Part", "catalogue", "file_of", "made", "parts"]

Record = dict[str, Any]  # of one point: which it is, what became of it, and its measures

WHERE = Where()  # processes of this machine
HALF = "half"  # the dense network after half of its updates: whether it has converged
_MEASURING = 4  # processes of a part, of which several may run
# who prunes while it trains is no bare criterion: lottery tickets, and what a task's recipe does
_NAMES = {"rounds": "lottery", "gradual": "auto", "rigl": "auto"}


@dataclass(frozen=True)
class Part:
    """Some methods at some sparsities on one task, all seeds."""

    task: str
    methods: tuple[str, ...]
    sparsities: tuple[float, ...] = SPARSITIES

    @property
    def line(self) -> str:
        """What it is."""
        shares = ", ".join(f"{100 * sparsity:.0f}" for sparsity in self.sparsities)
        return f"{', '.join(self.methods)} on {self.task}" + (f" at {shares} %" if self.methods != (HALF,) else "")

    def grid(self, scale: str, case: Case) -> dict[str, Any]:
        """As a grid file would say it."""
        dense = self.methods == (HALF,)
        found = grid(scale, {self.task: case}, ("dense",) if dense else self.methods, self.sparsities)
        if dense:
            # three networks that are only compared in words: any machine does
            found["base"]["device"] = "cuda" if torch.cuda.is_available() else "cpu"
            steps = grid_of(found).points[0].job.training.steps
            found["task"][self.task]["steps"] = steps // 2
        return found


@dataclass(frozen=True)
class Choices:
    """Nothing may be changed."""


def parts(scale: str, chosen: Mapping[str, Case]) -> dict[str, Part]:
    """Every part by name: criteria together, since they train in lock-step; lottery tickets by sparsity."""
    methods = size_of(scale).methods
    early = tuple(method for method in methods if method not in ("lottery", "auto"))
    found = {}
    for task in chosen:
        found[f"{task}-criteria"] = Part(task, early)
        for sparsity in SPARSITIES:
            found[f"{task}-lottery-{100 * sparsity:.0f}"] = Part(task, ("lottery",), (sparsity,))
        if "auto" in methods:
            found[f"{task}-auto"] = Part(task, ("auto",))
        if scale == "full":
            found[f"{task}-{HALF}"] = Part(task, (HALF,))
    return found


def catalogue(order: Order) -> Pieces:
    """One piece a part."""
    from_text(Choices, order.words)
    chosen = cases()
    every = {
        name: Piece(part.line, partial(made, order, name, part, chosen[part.task]))
        for name, part in parts(order.scale, chosen).items()
    }
    return Pieces(every, Choices)


def file_of(order: Order, name: str) -> Path:
    """Where a part is kept."""
    return order.out / f"matrix-{order.scale}" / f"{name}.json"


def made(order: Order, name: str, part: Part, case: Case) -> dict[str, Any]:
    """Trained and measured, or found again."""
    file = file_of(order, name)
    if not file.exists():
        sweep = Sweep(grid_of(part.grid(order.scale, case)), file.parent / "sweeps" / name, _where(part))
        total = len(sweep.grid.points)

        def watch(report: Report, left: int) -> None:
            if isinstance(report, Done):
                order.log(f"matrix, {name}: {total - left} of {total} points")

        rows = sweep.run(watch=watch)
        records = _records(sweep, rows, case, part, order.scale)
        write_json(file, {"machine": in_words(hardware()), "records": records})
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def _where(part: Part) -> Where:
    """Rounds are played by one seed a process, on a GPU too."""
    if part.methods != ("lottery",) or WHERE.on != "processes":
        return WHERE
    return dataclasses.replace(WHERE, processes=min(3, os.cpu_count() or 1))


def _records(sweep: Sweep, rows: list[dict[str, Any]], case: Case, part: Part, scale: str) -> list[Record]:
    """What became of every point; one pack for each method and sparsity: seeds differ in its numbers, not its size."""
    points = sweep.grid.points
    asked, packed = list[Asked](), set[tuple[str, float]]()
    for point, row in zip(points, rows):
        if row["status"] == "done":
            key = _key(point)
            asked.append(Asked.of(sweep, point.name, case, scale, packed=key not in packed))
            packed.add(key)
    processes = 1 if WHERE.on == "inline" else min(_MEASURING, os.cpu_count() or 1)
    measured = iter(measure_all(asked, processes=processes))
    found = []
    for point, row in zip(points, rows):
        method, sparsity = _key(point)
        own = {
            "task": part.task, "method": HALF if part.methods == (HALF,) else method, "sparsity": sparsity,
            "seed": point.job.seeds[0], "steps": point.job.training.steps, "status": row["status"],
        }  # fmt: skip
        done = row["status"] == "done"
        found.append(own | (next(measured) if done else {"why": str(row["why"])}))
    return found


def _key(point: Point) -> tuple[str, float]:
    prune = point.job.prune
    return ("dense", 0.0) if prune is None else (_NAMES.get(prune.when, prune.method), prune.sparsity)
