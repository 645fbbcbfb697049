"""Every way of pruning on every task: quality, quality under attack, pack size and latency, and who wins where."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewer.core.errors import UserError
from fewer.report.groups import HalfInterval, interval
from fewer.studies.matrix.cases import Case, cases, expect_device, grid, recipe, size_of
from fewer.studies.matrix.measure import Asked, measure_all, spelled
from fewer.studies.matrix.page import page
from fewer.studies.matrix.picture import picture
from fewer.studies.matrix.remarks import winners
from fewer.studies.order import Log, Order
from fewer.studies.study import Result
from fewer.sweep.grid import grid_of
from fewer.sweep.point import Point
from fewer.sweep.report import Done, Report
from fewer.sweep.run import Sweep, Where

__all__ = ["WHERE", "Cell", "matrix"]

WHERE = Where()  # processes of this machine
# who prunes while it trains is no bare criterion: lottery tickets, and what a task's recipe does
_NAMES = {"rounds": "lottery", "gradual": "auto", "rigl": "auto"}


@dataclass(frozen=True)
class Cell:
    """One method at one sparsity on one task, over all seeds."""

    task: str
    method: str
    sparsity: float
    metric: str
    quality: HalfInterval
    attacked: HalfInterval
    pack_bytes: int | None
    latency_ms: float | None
    seeds: int
    failures: tuple[str, ...] = ()


def matrix(order: Order) -> Result:
    """Tasks x methods x sparsities x seeds."""
    scale, out, log = order.scale, order.out, order.log
    expect_device(scale)
    chosen = cases()
    sweep = Sweep(described := grid_of(grid(scale, chosen)), out / f"matrix-{scale}", WHERE)
    total = len(described.points)

    def watch(report: Report, left: int) -> None:
        if isinstance(report, Done):
            log(f"matrix: {total - left} of {total} points")

    rows = sweep.run(watch=watch)
    cells = _cells(sweep, rows, chosen, log)
    if not any(cell.seeds for cell in cells):
        raise UserError(f"none of {total} points finished: {rows[0]['why']}", "at least one", f"see {sweep.out}")
    table, how = [_row(cell) for cell in cells], recipe(scale)
    lines = winners({"rows": table})
    failed = [f"{cell.task} {cell.method} {cell.sparsity:g}: {why}" for cell in cells for why in cell.failures]
    return Result(
        title="Every way of pruning on every task",
        columns=["task", "method", "pruned", "figure", "quality", "under attack", "pack", "one sample", "seeds"],
        rows=table,
        notes=[
            how,
            *(f"under attack: {name} {case.attack} ({case.unit})" for name, case in chosen.items()),
            *failed,
        ],
        figures={
            "matrix.html": page(cells, [*lines, how], chosen, size_of(scale).methods).html().encode(),
            "matrix.png": picture(table),
        },
        details={"points": rows},
    )


def _cells(sweep: Sweep, rows: Sequence[Mapping[str, Any]], chosen: Mapping[str, Case], log: Log) -> list[Cell]:
    groups: dict[tuple[str, str, float], list[tuple[Point, Mapping[str, Any]]]] = {}
    for point, row in zip(sweep.grid.points, rows):
        prune = point.job.prune
        method = "dense" if prune is None else _NAMES.get(prune.when, prune.method)
        groups.setdefault((point.job.task, method, prune.sparsity if prune else 0.0), []).append((point, row))
    asked: dict[tuple[str, str, float], list[Asked]] = {
        key: [
            # one pack a cell: seeds differ in its numbers, hardly in its size
            Asked.of(sweep, point.name, chosen[key[0]], packed=not place)
            for place, point in enumerate(point for point, row in members if row["status"] == "done")
        ]
        for key, members in groups.items()
    }
    measured = iter(measure_all([each for part in asked.values() for each in part], processes=_processes()))
    found = []
    for key, members in groups.items():
        failures = tuple(str(row["why"]) for _, row in members if row["status"] != "done")
        found.append(_cell(*key, [next(measured) for _ in asked[key]], failures))
        log(" | ".join(map(str, _row(found[-1]))))
    return found


def _processes() -> int:
    """As many as cores, where points are trained in processes."""
    return 1 if WHERE.on == "inline" else os.cpu_count() or 1


def _cell(task: str, method: str, sparsity: float, measured: list[dict[str, Any]], failures: tuple[str, ...]) -> Cell:
    first = measured[0] if measured else {}
    return Cell(
        task, method, sparsity, first.get("figure", ""),
        interval([found["quality"] for found in measured]), interval([found["attacked"] for found in measured]),
        first.get("pack_bytes"), first.get("latency_ms"), len(measured), failures,
    )  # fmt: skip


def _row(cell: Cell) -> list[Any]:
    return [
        cell.task, cell.method, f"{cell.sparsity:.0%}", cell.metric, spelled(cell.quality), spelled(cell.attacked),
        "-" if cell.pack_bytes is None else f"{cell.pack_bytes / 1024:.1f} KiB",
        "-" if cell.latency_ms is None else f"{cell.latency_ms:.3g} ms", cell.seeds,
    ]  # fmt: skip
