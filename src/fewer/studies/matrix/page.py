"""The matrix as one page: two charts a task, with confidence intervals, and the table behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fewer.report.chart import curves
from fewer.report.page import Page, figure, table, words
from fewer.studies.matrix.cases import Case

if TYPE_CHECKING:
    from fewer.studies.matrix.matrix import Cell

__all__ = ["page", "series"]


def page(cells: Sequence[Cell], lines: Sequence[str], chosen: Mapping[str, Case], methods: Sequence[str]) -> Page:
    """The whole page."""
    found = Page(
        "Every way of pruning on every task",
        "Means over seeds with 95 % confidence intervals (Student's t); nothing was chosen by looking at the test set.",
    )
    found.add("Who wins where", "".join(words(line) for line in lines))
    for task, case in chosen.items():
        own = [cell for cell in cells if cell.task == task]
        name = next((cell.metric for cell in own if cell.metric), "quality")
        clean, attacked = (series(own, methods, what) for what in ("quality", "attacked"))
        across = "weights pruned, in percent"
        found.add(
            task,
            figure(curves(clean, across, name, marks=True), f"{name} against the share pruned; level: the dense one."),
            figure(
                curves(attacked, across, f"{name}, attacked", marks=True),
                f"The same under {case.attack} ({case.unit}).",
            ),
            table(
                ["method", "pruned", name, "±", "attacked", "±", "pack KiB", "ms a sample", "seeds", "failed"],
                [_row(cell) for cell in own],
            ),
        )
    return found


def series(cells: Sequence[Cell], methods: Sequence[str], what: str) -> dict[str, list[tuple[float, ...]]]:
    """Of each method (percent pruned, mean, half an interval); the dense network is a level line."""
    across = sorted({cell.sparsity for cell in cells if cell.sparsity})
    return {
        method: [
            (100 * sparsity, *getattr(cell, what))
            for cell in cells
            if cell.method == method
            for sparsity in ([cell.sparsity] if cell.sparsity else across)
        ]
        for method in methods
    }


def _row(cell: Cell) -> list[object]:
    size = "-" if cell.pack_bytes is None else f"{cell.pack_bytes / 1024:.1f}"
    latency = "-" if cell.latency_ms is None else f"{cell.latency_ms:.3g}"
    return [cell.method, f"{cell.sparsity:.0%}", *cell.quality, *cell.attacked, size, latency, cell.seeds,
            len(cell.failures)]  # fmt: skip
