"""Charts as SVG text: they scale to a phone and follow the page's colours, light or dark."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

__all__ = ["bars", "curves"]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 300, 64, 40, 14
Points = Sequence[tuple[float, float]]


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    span = (high - low) or abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / count))
    step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= count)
    return [tick * step for tick in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def curves(series: Mapping[str, Points], across: str, up: str) -> str:
    """Lines with a legend; `across` and `up` label the axes."""
    points = [point for line in series.values() for point in line if math.isfinite(point[1])]
    if not points:
        return "<p>nothing to draw</p>"
    x0, x1 = min(x for x, _ in points), max(x for x, _ in points)
    y0, y1 = min(y for _, y in points), max(y for _, y in points)
    x1, y1 = (x1 if x1 > x0 else x0 + 1), (y1 if y1 > y0 else y0 + 1)

    def place(x: float, y: float) -> tuple[float, float]:
        across_share, up_share = (x - x0) / (x1 - x0), (y - y0) / (y1 - y0)
        return (
            _LEFT + across_share * (_WIDTH - _LEFT - 12),
            _HEIGHT - _BOTTOM - up_share * (_HEIGHT - _BOTTOM - _TOP),
        )

    parts = []
    for tick in _ticks(y0, y1):
        _, y = place(x0, tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 12}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in _ticks(x0, x1):
        x, _ = place(tick, y0)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    for number, (name, line) in enumerate(series.items()):
        drawn = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in line if math.isfinite(y))
        parts.append(f'<polyline class="line c{number % 6}" points="{drawn}"/>')
        parts.append(
            f'<text class="c{number % 6}" x="{_WIDTH - 16}" y="{_TOP + 14 + 16 * number}" text-anchor="end">'
            f"{html.escape(name)}</text>"
        )
    parts.append(
        f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">{html.escape(across)}</text>'
    )
    parts.append(f'<text x="4" y="{_TOP}">{html.escape(up)}</text>')
    return _frame(parts, _HEIGHT, f"{up} against {across}")


def bars(values: Mapping[str, float], unit: str, digits: int = 3) -> str:
    """One horizontal bar a name."""
    most = max([abs(value) for value in values.values()] or [1.0]) or 1.0
    parts, height = [], 26 * len(values) + 8
    for number, (name, value) in enumerate(values.items()):
        y, length = 26 * number + 6, 300 * abs(value) / most
        parts.append(f'<text x="236" y="{y + 14}" text-anchor="end">{html.escape(name)}</text>')
        parts.append(f'<rect class="c{number % 6}" x="244" y="{y}" width="{length:.1f}" height="18" rx="3"/>')
        parts.append(f'<text x="{252 + length:.1f}" y="{y + 14}">{value:.{digits}g} {html.escape(unit)}</text>')
    return _frame(parts, height, f"bars in {unit}")


def _frame(parts: Sequence[str], height: int, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{html.escape(label)}">'
        + "".join(parts)
        + "</svg>"
    )
