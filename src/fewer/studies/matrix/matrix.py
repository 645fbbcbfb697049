"""Every way of pruning on every task: quality, quality under attack, pack size and latency, and who wins where."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewer.core.errors import UserError
from fewer.report.groups import HalfInterval, interval
from fewer.studies.matrix.cases import SPARSITIES, cases, expect_device, recipe, size_of
from fewer.studies.matrix.measure import spelled
from fewer.studies.matrix.page import page
from fewer.studies.matrix.parts import HALF, Part, file_of, made, parts
from fewer.studies.matrix.picture import picture
from fewer.studies.matrix.remarks import winners
from fewer.studies.order import Order
from fewer.studies.study import Result

__all__ = ["Cell", "matrix"]


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
    """Tasks x methods x sparsities x seeds: from the parts that are there, and at full scale without a GPU from these
    alone."""
    scale, chosen = order.scale, cases()
    every = parts(scale, chosen)
    kept = {name: part for name, part in every.items() if file_of(order, name).exists()}
    if not kept:
        expect_device(scale)
    here = every if scale != "full" or not kept else kept
    found = {name: made(order, name, part, chosen[part.task]) for name, part in here.items()}
    records = [record for part in found.values() for record in part["records"]]
    if not any(record["status"] == "done" for record in records):
        raise UserError(
            f"none of {len(records)} points finished: {records[0]['why']}", "at least one", f"see {order.out}"
        )
    cells = _cells([record for record in records if record["method"] != HALF])
    table, how = [_row(cell) for cell in cells], recipe(scale)
    lines = winners({"rows": table})
    failed = [
        f"{cell.task} {cell.method} {cell.sparsity:g}, {len(cell.failures)} of "
        f"{cell.seeds + len(cell.failures)} seeds: {cell.failures[0]}"
        for cell in cells
        if cell.failures
    ]
    left = _left_out(every, here)
    return Result(
        title="Every way of pruning on every task" + (f"; cut: {left}" if left else ""),
        columns=["task", "method", "pruned", "figure", "quality", "under attack", "pack", "one sample", "seeds"],
        rows=table,
        notes=[
            how,
            *_converged(records),
            *(
                f"under attack: {name} {case.attack} ({case.unit})"
                if scale in case.attacked_at
                else f"under attack: {name} was not attacked"
                for name, case in chosen.items()
                if any(cell.task == name for cell in cells)
            ),
            *failed,
        ],
        figures={
            "matrix.html": page(cells, [*lines, how], chosen, size_of(scale).methods).html().encode(),
            "matrix.png": picture(table),
        },
        details={"points": records},
        commands=[f"fewer reproduce matrix --scale full --pieces {' '.join(here)} --out DIR", order.command()]
        if scale == "full"
        else [],
        machines=list(dict.fromkeys(part["machine"] for part in found.values())),
    )


def _left_out(every: Mapping[str, Part], here: Mapping[str, Part]) -> str:
    """In words, what was not trained: whole tasks by their names, of others what they go without."""
    told = []
    for task in dict.fromkeys(part.task for part in every.values()):
        own = {name: part for name, part in every.items() if part.task == task and part.methods != (HALF,)}
        missing = [part for name, part in own.items() if name not in here]
        if len(missing) == len(own):
            told.append(task)
        elif missing:
            lost = [f"{100 * part.sparsities[0]:.0f}" for part in missing if part.methods == ("lottery",)]
            whole = len(lost) == len(SPARSITIES)
            words = [", ".join(part.methods) for part in missing if part.methods != ("lottery",)]
            words += ["lottery" + ("" if whole else f" at {', '.join(lost)} %")] if lost else []
            told.append(f"{' and '.join(words)} on {task}")
    return "; ".join(told)


def _converged(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of each task the dense figure after half of the updates beside the last one."""
    lines = []
    for task in dict.fromkeys(record["task"] for record in records):
        means, steps = {}, {}
        for method in (HALF, "dense"):
            own = [r for r in records if (r["task"], r["method"], r["status"]) == (task, method, "done")]
            means[method] = sum(r["quality"] for r in own) / len(own) if own else math.nan
            steps[method] = own[0]["steps"] if own else 0
        if math.isfinite(means[HALF] + means["dense"]):
            lines.append(
                f"{task}: dense {means[HALF]:.4g} after {steps[HALF]:,} updates, {means['dense']:.4g} after "
                f"{steps['dense']:,}"
            )
    return lines


def _cells(records: Sequence[Mapping[str, Any]]) -> list[Cell]:
    groups: dict[tuple[str, str, float], list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["task"], record["method"], record["sparsity"]), []).append(record)
    tasks, methods = (list(dict.fromkeys(key[part] for key in groups)) for part in (0, 1))
    order = sorted(groups, key=lambda key: (tasks.index(key[0]), methods.index(key[1]), key[2]))
    found = []
    for key in order:
        done = [dict(record) for record in groups[key] if record["status"] == "done"]
        failures = tuple(str(record["why"]) for record in groups[key] if record["status"] != "done")
        found.append(_cell(*key, done, failures))
    return found


def _cell(task: str, method: str, sparsity: float, measured: list[dict[str, Any]], failures: tuple[str, ...]) -> Cell:
    first = measured[0] if measured else {}
    attacked = [found["attacked"] for found in measured if found["attacked"] is not None]
    return Cell(
        task, method, sparsity, first.get("figure", ""),
        interval([found["quality"] for found in measured]), interval(attacked),
        first.get("pack_bytes"), first.get("latency_ms"), len(measured), failures,
    )  # fmt: skip


def _row(cell: Cell) -> list[Any]:
    return [
        cell.task, cell.method, f"{cell.sparsity:.0%}", cell.metric, spelled(cell.quality), spelled(cell.attacked),
        "-" if cell.pack_bytes is None else f"{cell.pack_bytes / 1024:.1f} KiB",
        "-" if cell.latency_ms is None else f"{cell.latency_ms:.3g} ms", cell.seeds,
    ]  # fmt: skip
