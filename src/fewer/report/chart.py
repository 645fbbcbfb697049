"""Charts as SVG text: they scale to a phone, follow the page's colours, and say in words what they show."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fewer.report.style import COLOURS

__all__ = ["bars", "curves", "ratios"]

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM, _TOP = 460, 270, 52, 14, 42, 24
_ROW, _NAME = 25, 168  # of a bar chart: pixels a bar, and where bars begin
_HOVERED = 40  # points of a line that show their values
_STEEP = 30.0  # beyond this ratio of the largest to the smallest value a logarithmic axis shows more
Points = Sequence[tuple[float, ...]]  # (x, y), (x, y, half the width of its interval), or (x, y, low, high)


@dataclass(frozen=True)
class _Axis:
    """From values to pixels."""

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high = self._scaled(self.low), self._scaled(self.high)
        share = (self._scaled(max(value, self.low) if self.logarithmic else value) - low) / ((high - low) or 1.0)
        return self.begin + share * (self.end - self.begin)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value

    def ticks(self, count: int = 6) -> list[float]:
        if self.logarithmic:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if self.high / self.low < 300 else (1,)
            found = [m * 10.0**power for power in range(first, last + 1) for m in steps]
            return [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]
        return _round_numbers(self.low, self.high, count)


def _round_numbers(low: float, high: float, count: int) -> list[float]:
    span = (high - low) or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span / count))
    step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= count)
    ticks = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [round(tick * step, 12) for tick in ticks]


def curves(
    series: Mapping[str, Points],
    across: str,
    up: str,
    *,
    percent: bool = False,
    marks: bool = False,
    colours: Mapping[str, int] | None = None,
) -> str:
    """Lines with a legend below; a third number of a point is half its interval, or a third and fourth its ends, and
    give the line a band. Lines have the colours of their order, or those given by name."""
    clean = {name: [p for p in line if all(math.isfinite(v) for v in p[:2])] for name, line in series.items()}
    lines = {name: line for name, line in clean.items() if line}
    if not lines:
        return '<p class="soft">nothing to draw</p>'
    horizontal, vertical = _axes([point for line in lines.values() for point in line], whole=percent)
    name_of = _percent if percent else _number
    parts = _grid(horizontal, vertical, name_of)
    colour = {name: (colours or {}).get(name, number) % COLOURS for number, name in enumerate(lines)}
    for name, line in lines.items():
        tips = [f"{name}: {_told(p, name_of)} at {_number(p[0])}" for p in line]
        parts += _line(line, colour[name], horizontal, vertical, marks=marks, tips=tips)
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, across, "middle", "soft"))
    parts.append(_text(0, 12, up + (" (logarithmic)" if vertical.logarithmic else ""), "start", "soft"))
    spoken = [
        f"{name} goes from {name_of(line[0][1])} at {_number(line[0][0])} to {name_of(line[-1][1])} at "
        f"{_number(line[-1][0])}"
        for name, line in lines.items()
    ]
    legend = "".join(f'<li><i class="c{colour[name]}"></i>{html.escape(name)}</li>' for name in lines)
    return _frame(parts, _HEIGHT, f"{up} against {across}", "; ".join(spoken)) + f'<ul class="legend">{legend}</ul>'


def _axes(points: Points, *, whole: bool) -> tuple[_Axis, _Axis]:
    x0, x1 = min(p[0] for p in points), max(p[0] for p in points)
    ends = [_ends(point) for point in points]
    y0, y1 = min(low for low, _ in ends), max(high for _, high in ends)
    if whole:  # shares: an interval may reach beyond 0 and 1, a share cannot
        y0, y1 = max(y0, 0.0), min(y1, 1.0)
    logarithmic = not whole and y0 > 0 and y1 / y0 > _STEEP
    if not logarithmic:
        room = 0.04 * (y1 - y0) or 0.05 * abs(y1) or 1.0
        y0, y1 = y0 - room, y1 + room
    x1 = x1 if x1 > x0 else x0 + 1.0
    return (
        _Axis(x0, x1, _LEFT + 6, _WIDTH - _RIGHT - 6),
        _Axis(y0, y1, _HEIGHT - _BOTTOM, _TOP, logarithmic),
    )


def _ends(point: tuple[float, ...]) -> tuple[float, float]:
    """Of its interval, or the point itself twice."""
    if len(point) < 3 or not all(math.isfinite(value) for value in point[2:]):
        return point[1], point[1]
    return (point[2], point[3]) if len(point) > 3 else (point[1] - point[2], point[1] + point[2])


def _told(point: tuple[float, ...], name_of: Callable[[float], str]) -> str:
    low, high = _ends(point)
    return name_of(point[1]) if low == high else f"{name_of(point[1])} ({name_of(low)} to {name_of(high)})"


def _grid(horizontal: _Axis, vertical: _Axis, name_of: Callable[[float], str]) -> list[str]:
    parts = []
    for tick in vertical.ticks():
        y = vertical(tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(_LEFT - 6, y + 4, name_of(tick), "end", "soft"))
    parts += [
        _text(horizontal(tick), _HEIGHT - _BOTTOM + 17, _number(tick), "middle", "soft") for tick in horizontal.ticks()
    ]
    return parts


def _line(
    line: Points, colour: int, horizontal: _Axis, vertical: _Axis, *, marks: bool, tips: Sequence[str]
) -> list[str]:
    places = [(horizontal(p[0]), vertical(p[1])) for p in line]
    parts = []
    ends = [_ends(p) for p in line]
    if any(low != high for low, high in ends):
        inside = lambda y: min(max(y, _TOP), _HEIGHT - _BOTTOM)  # noqa: E731
        upper = [(x, inside(vertical(high))) for (x, _), (_, high) in zip(places, ends)]
        lower = [(x, inside(vertical(low))) for (x, _), (low, _) in zip(places, ends)]
        if len(line) > 1:
            shape = "L".join(f"{x:.1f} {y:.1f}" for x, y in upper + lower[::-1])
            parts.append(f'<path class="band c{colour}" d="M{shape}Z"/>')
        parts += [
            f'<line class="whisker c{colour}" x1="{x:.1f}" x2="{x:.1f}" y1="{a:.1f}" y2="{b:.1f}"/>'
            for (x, a), (_, b) in zip(upper, lower)
            if marks
        ]
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(f'<polyline class="line c{colour}" points="{drawn}"/>')
    if marks or len(line) == 1:
        parts += [f'<circle class="c{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.4"/>' for x, y in places]
    # what a pointer finds: larger than a mark, and on long lines not every point
    every = -(-len(line) // _HOVERED)
    parts += [
        f'<circle class="hover" cx="{x:.1f}" cy="{y:.1f}" r="8" data-tip="{html.escape(tip)}"/>'
        for (x, y), tip in [*zip(places, tips)][::every]
    ]
    return parts


def bars(values: Mapping[str, float], unit: str, digits: int = 3, *, most: float | None = None, colour: int = 0) -> str:
    """One horizontal bar a name, all of one colour: names tell them apart; `most` fixes the full length."""
    full = most or max([abs(value) for value in values.values()] or [1.0]) or 1.0
    parts = []
    for number, (name, value) in enumerate(values.items()):
        y, length = _ROW * number + 4, 200 * min(abs(value) / full, 1.0)
        parts.append(f"<g><title>{html.escape(name)}</title>{_text(_NAME - 8, y + 13, _short(name), 'end')}</g>")
        tip = html.escape(f"{name}: {_digits(value, digits)} {unit}".strip())
        parts.append(
            f'<rect class="c{colour % COLOURS}" x="{_NAME}" y="{y}" width="{max(length, 1):.1f}" height="17" rx="3" '
            f'data-tip="{tip}"/>'
        )
        parts.append(_text(_NAME + 8 + length, y + 13, f"{_digits(value, digits)} {unit}".strip(), "start"))
    spoken = "; ".join(f"{name} {_digits(value, digits)} {unit}" for name, value in values.items())
    return _frame(parts, _ROW * len(values) + 6, f"bars in {unit}", spoken)


def ratios(values: Mapping[str, float]) -> str:
    """How many times better, on a logarithmic axis around 1: bars to the right are wins, to the left losses."""
    shown = {name: value for name, value in values.items() if value > 0 and math.isfinite(value)}
    if not shown:
        return '<p class="soft">nothing to draw</p>'
    low, high = min(*shown.values(), 0.8), max(*shown.values(), 1.25)
    axis, parts = _Axis(low, high, 232, _WIDTH - 52, True), []
    for number, (name, value) in enumerate(shown.items()):
        y, begin, end = _ROW * number + 4, axis(min(value, 1.0)), axis(max(value, 1.0))
        label = _short(name, 34)
        parts.append(f"<g><title>{html.escape(name)}</title>{_text(190, y + 13, label, 'end')}</g>")
        colour = 2 if value >= 1 else 1
        parts.append(f'<rect class="c{colour}" x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="17"/>')
        parts.append(_text(end + 6, y + 13, f"{value:.3g}x", "start"))
    height = _ROW * len(shown) + 6
    parts.append(f'<line class="whisker c0" x1="{axis(1.0):.1f}" x2="{axis(1.0):.1f}" y1="0" y2="{height - 4}"/>')
    return _frame(parts, height, "ratios", "; ".join(f"{name} {value:.3g} times" for name, value in shown.items()))


def _frame(parts: Sequence[str], height: int, title: str, spoken: str) -> str:
    label = html.escape(f"{title}: {spoken}", quote=True)
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}">' + "".join(parts) + "</svg>"


def _text(x: float, y: float, content: str, anchor: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(content)}</text>'


def _short(name: str, most: int = 24) -> str:
    return name if len(name) <= most else name[: most // 2 - 1] + "…" + name[-(most // 2) :]


def _digits(value: float, digits: int) -> str:
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}" if value == round(value, 6) else f"{value:.3g}"


def _percent(value: float) -> str:
    return f"{100 * value:.4g} %"
