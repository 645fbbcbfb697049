"""The matrix as one page: a chart a task, with confidence intervals, and the table behind it."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fewer.report.groups import Interval
from fewer.report.page import Page, figure, table, words
from fewer.studies.matrix.cases import Case

if TYPE_CHECKING:
    from fewer.studies.matrix.matrix import Cell

__all__ = ["chart", "page"]

Series = Sequence[tuple[float, Interval]]
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 320, 60, 96, 16, 40
_STEPS = 4  # lines of the grid


def page(cells: Sequence[Cell], lines: Sequence[str], chosen: Mapping[str, Case], methods: Sequence[str]) -> Page:
    """The whole page."""
    found = Page(
        "Every way of pruning on every task",
        "Means over seeds with 95 % confidence intervals (Student's t); nothing was chosen by looking at the test set.",
    )
    found.add("Who wins where", "".join(words(line) for line in lines))
    for task, case in chosen.items():
        own = [cell for cell in cells if cell.task == task]
        name = next((cell.figure for cell in own if cell.figure), "quality")
        found.add(
            task,
            figure(chart({m: _series(own, m, "quality") for m in methods}, name), f"{name} against the share pruned."),
            figure(
                chart({m: _series(own, m, "attacked") for m in methods}, f"{name}, attacked"),
                f"The same under {case.attack} ({case.unit}).",
            ),
            table(
                ["method", "pruned", name, "±", "attacked", "±", "pack KiB", "ms a sample", "seeds", "failed"],
                [_row(cell) for cell in own],
            ),
        )
    return found


def _series(cells: Sequence[Cell], method: str, what: str) -> Series:
    return [(cell.sparsity, getattr(cell, what)) for cell in cells if cell.method == method]


def _row(cell: Cell) -> list[object]:
    size = "-" if cell.pack_bytes is None else f"{cell.pack_bytes / 1024:.1f}"
    latency = "-" if cell.latency_ms is None else f"{cell.latency_ms:.3g}"
    return [cell.method, f"{cell.sparsity:.0%}", *cell.quality, *cell.attacked, size, latency, cell.seeds,
            len(cell.failures)]  # fmt: skip


def chart(series: Mapping[str, Series], up: str) -> str:
    """Lines with whiskers; the dense network is a level line, as it has no sparsity. Steps across are even."""
    across = sorted({x for line in series.values() for x, _ in line if x > 0})
    ends = [mean + sign * _half(half) for line in series.values() for _, (mean, half) in line for sign in (-1, 1)]
    ends = [end for end in ends if math.isfinite(end)]
    if not across or not ends:
        return "<p>nothing to draw</p>"
    low, high = min(ends), max(ends)
    high = high if high > low else low + 1.0

    def height(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _BOTTOM - _TOP)

    def place(x: float) -> float:
        return _LEFT + (across.index(x) + 0.5) / len(across) * (_WIDTH - _LEFT - _RIGHT)

    parts = []
    for step in range(_STEPS + 1):
        value = low + (high - low) * step / _STEPS
        y = height(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    parts += [f'<text x="{place(x):.1f}" y="{_HEIGHT - 20}" text-anchor="middle">{x:.0%}</text>' for x in across]
    for number, (name, line) in enumerate(series.items()):
        parts += _drawn(name, [(x, y) for x, y in line if math.isfinite(y[0])], number, place, height)
    parts.append(f'<text x="4" y="{_TOP - 4}">{html.escape(up)}</text>')
    label = html.escape(f"{up} against the share pruned")
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _half(half: float) -> float:
    return half if math.isfinite(half) else 0.0


def _drawn(
    name: str, line: Series, number: int, place: Callable[[float], float], height: Callable[[float], float]
) -> list[str]:
    colour, y = f"c{number % 6}", _TOP + 14 + 17 * number
    parts = [f'<text class="{colour}" x="{_WIDTH - _RIGHT + 8}" y="{y}">{html.escape(name)}</text>']
    if line and line[0][0] == 0:  # dense
        level = height(line[0][1][0])
        ends = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{level:.1f}" y2="{level:.1f}"'
        return [*parts, f'<line class="line {colour}" stroke-dasharray="5 4" {ends}/>']
    # methods stand a little apart, so that their whiskers can be seen
    points = [(place(x) + 4 * (number - 3), y) for x, y in line]
    drawn = " ".join(f"{x:.1f},{height(mean):.1f}" for x, (mean, _) in points)
    parts.append(f'<polyline class="line {colour}" points="{drawn}"/>')
    for x, (mean, half) in points:
        low, high = height(mean - _half(half)), height(mean + _half(half))
        parts.append(f'<line class="line {colour}" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>')
    return parts
