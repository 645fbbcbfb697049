"""What was invented on one task, on all of them: hardening, voting and packing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewer.attack.audit import attacked
from fewer.core.abilities import Voting
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.nets import NetworkSet
from fewer.core.task import Predict
from fewer.ensemble.combine import combine
from fewer.report.groups import interval
from fewer.run.load import Trained, load
from fewer.studies.matrix.cases import Case, cases, expect_device, size_of
from fewer.studies.matrix.measure import Asked, measure, spelled
from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.sweep.grid import grid_of
from fewer.sweep.point import Point
from fewer.sweep.run import Sweep, Where

__all__ = ["WHERE", "settings", "transfer"]

WHERE = Where()  # processes of this machine
_SPARSITY = 0.9
_KINDS = ("plain", "hardened", "packed")


def transfer(order: Order) -> Result:
    """Each task plain, hardened, voting and as a pack of a tenth of its weights."""
    scale, out, log = order.scale, order.out, order.log
    expect_device(scale)
    chosen = cases()
    sweep = Sweep(grid_of(_grid(scale, chosen)), out / f"transfer-{scale}", WHERE)
    rows = sweep.run(watch=lambda report, left: log(f"transfer: {left} points left"))
    table, failures = list[list[Any]](), [f"{row['point']}: {row['why']}" for row in rows if row["status"] != "done"]
    for name, case in chosen.items():
        done = [point for point, row in zip(sweep.grid.points, rows) if row["status"] == "done"]
        own = [point for point in done if point.job.task == name]
        for line in _task_rows(sweep, name, case, own):
            table.append(line)
            log(" | ".join(map(str, line)))
    return Result(
        title="Hardening, voting and packing on every task",
        columns=["task", "what", "figure", "quality", "under attack", "pack", "seeds"],
        rows=table,
        notes=[
            *(f"{name}: hardened by {case.harden}, attacked by {case.attack}" for name, case in chosen.items()),
            "A vote is attacked through its first member, whose changed inputs all members then see.",
            *failures,
        ],
        details={"points": rows},
    )


def settings(order: Order) -> dict[str, Any]:
    """Everything that is trained, and what it is attacked by."""
    chosen = cases()
    return {"grid": _grid(order.scale, chosen), "attacks": {name: case.attack for name, case in chosen.items()}}


def _grid(scale: str, chosen: Mapping[str, Case]) -> dict[str, Any]:
    size = size_of(scale)
    return {
        "base": {"device": size.device},
        "points": [entry for name, case in chosen.items() for entry in _points(name, case, max(size.seeds, 2))],
        "task": {name: dict(getattr(case, scale)) for name, case in chosen.items()},
    }


def _points(name: str, case: Case, seeds: int) -> list[dict[str, Any]]:
    many = {"task": name, "seed": list(range(seeds))}
    return [many, {**many, "harden": case.harden}, {"task": name, "prune": "snip", "sparsity": _SPARSITY}]


def _kind(point: Point) -> str:
    return "packed" if point.job.prune else "hardened" if point.job.harden else "plain"


def _task_rows(sweep: Sweep, name: str, case: Case, points: Sequence[Point]) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for kind in _KINDS:
        members = [point for point in points if _kind(point) == kind]
        found = [measure(Asked.of(sweep, point.name, case, packed=not number)) for number, point in enumerate(members)]
        if found:
            size = found[0]["pack_bytes"]
            rows.append([
                name, f"snip {_SPARSITY:.0%}" if kind == "packed" else kind, found[0]["figure"],
                spelled(interval([each["quality"] for each in found])),
                spelled(interval([each["attacked"] for each in found])),
                "-" if size is None else f"{size / 1024:.1f} KiB", len(found),
            ])  # fmt: skip
    runs = [load(sweep.results.folder(point.name).path) for point in points if _kind(point) == "plain"]
    return rows + _votes(name, case, runs)


def _votes(name: str, case: Case, runs: Sequence[Trained]) -> list[list[Any]]:
    """The plain runs as one, by each way that the task allows."""
    if len(runs) < 2:
        return []
    task, rows = runs[0].task, list[list[Any]]()
    members = [predictor(task, run.modules, run.job.seeds[0]) for run in runs]
    nets = NetworkSet({key: module.requires_grad_(True) for key, module in runs[0].modules.items()}, training=False)
    for how in ("mean", *(("majority",) if isinstance(task, Voting) else ())):
        vote: Predict = combine(task, members, how)
        clean, hostile = evaluate(task, vote), evaluate(task, attacked(task, nets, case.attack, predict=vote))
        metric = case.metric or next(iter(clean))
        rows.append([name, f"vote by {how}", metric, f"{clean[metric]:.4g}", f"{hostile[metric]:.4g}", "-", len(runs)])
    return rows
