"""The smallest network of every system that still does its job: `fewer smallest` as a table."""

from __future__ import annotations

from typing import Any

from fewer.studies.matrix.cases import cases, size_of
from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.sweep.smallest import Budget, Found, Row, smallest

__all__ = ["settings", "smallest_networks"]


def settings(order: Order) -> dict[str, Any]:
    """What is searched, and within which loss; the same at every scale."""
    size_of(order.scale)
    return {
        name: {"words": dict(case.search), "max_loss": case.max_loss, "chosen on": "validation"}
        for name, case in cases().items()
        if case.max_loss
    }


def smallest_networks(order: Order) -> Result:
    """One row a system; every network that was tried is in the details."""
    rows: list[list[Any]] = []
    curves: dict[str, list[Row]] = {}
    for name, case in cases().items():
        if case.max_loss:
            told = lambda row, name=name: order.log(f"{name}: {row['share']:.1%} kept")  # noqa: E731
            found = smallest(
                name, case.search, Budget(max_loss=case.max_loss), order.out / "smallest" / name, told=told
            )
            rows.append(_line(name, case.max_loss, found))
            curves[name] = found.curve
            order.log(" | ".join(map(str, rows[-1])))
    return Result(
        title="The smallest network that still does the job, by each task's own recipe",
        columns=["task", "may lose", "weights kept", "of", "%", "metric", "dense, validation", "validation", "loss",
                 "dense, test", "test", "pack", "networks tried"],
        rows=rows,
        notes=["Chosen on the validation split; the test split was looked at by nobody. One seed each."],
        details={"curves": curves},
    )  # fmt: skip


def _line(name: str, loss: float, found: Found) -> list[Any]:
    row, dense = found.row, found.curve[0]
    return [
        name, f"{loss:.1%}", f"{row['kept']:,}", f"{row['weights']:,}", f"{100 * row['kept'] / row['weights']:.2g}",
        row["metric"], *(f"{value:.4g}" for value in (dense["validation"], row["validation"])), f"{row['loss']:.2%}",
        *(f"{value:.4g}" for value in (dense["test"], row["test"])), f"{row['bytes'] / 1024:.1f} KiB", len(found.curve),
    ]  # fmt: skip
