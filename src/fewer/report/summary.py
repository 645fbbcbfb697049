"""The beginning of a report: of every task one line in words and one picture, all runs beside each other."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from fewer.core.registry import system_of
from fewer.report.attacks import attack_in_words
from fewer.report.certainty.units import Interval
from fewer.report.description import microseconds, shown
from fewer.report.groups import Group
from fewer.report.measured import Measured
from fewer.report.style import COLOURS

__all__ = ["headline", "sentence", "summary"]


@dataclass(frozen=True)
class _Row:
    """A bar."""

    group: Group
    found: Interval
    text: str


def summary(every: Sequence[Measured]) -> list[str]:
    """A block for each task."""
    return [
        f"<h3>{html.escape(system_of(one.task).description.heading)}</h3>"
        f'<p class="headline">{html.escape(headline(one))}</p>{_picture(one)}'
        f'<p class="soft">{html.escape(sentence(one))}</p>'
        for one in every
    ]


def headline(measured: Measured) -> str:
    """What is gone, and what that does to the metric that matters."""
    least, dense = measured.least, measured.dense
    removed = 100 * (1 - least.count.density)
    told = f"{removed:.3g} % fewer weights" if least.kept < least.weights else f"All {least.weights:,} weights"
    if not measured.name:
        return f"{told}."
    label, share = measured.metric.label, measured.metric.share
    told += f", {label} {shown(least.metric(measured.name).mean, share)}"
    if dense is not None and dense.name != least.name:
        told += f" instead of {shown(dense.metric(measured.name).mean, share)}"
        change = measured.against_dense(least)
        if change is not None and change.found.low <= 0 <= change.found.high:
            told += ", not told apart"
    return f"{told}."


def sentence(measured: Measured) -> str:
    """How sure that is, what is counted, how small and fast it is, and what an attack leaves."""
    parts = (_quality(measured), _meaning(measured), _sized(measured), _survival(measured))
    return " ".join(part for part in parts if part)


def _quality(measured: Measured) -> str:
    if not measured.name:
        return ""
    least = measured.least
    change = measured.against_dense(least)
    if change is None:
        return f"{least.name}: {measured.metric.label} {measured.spelled(least.metric(measured.name))}."
    sure = "95 % interval in brackets, here and above" if math.isfinite(change.found.low) else "no interval"
    return f"Difference from {change.first}: {measured.change(*change.found[:3])}, {sure}."


def _meaning(measured: Measured) -> str:
    metric = measured.metric
    return f"{metric.label[0].upper()}{metric.label[1:]}: {metric.meaning}." if metric.meaning else ""


def _sized(measured: Measured) -> str:
    size, told = measured.sizes[measured.least.name], []
    if math.isfinite(size.smaller):
        told.append(f"The file is {size.smaller:.3g} times smaller than dense float32")
    if math.isfinite(size.faster):
        told.append(f"One sample takes {microseconds(size.pack_us)}, through torch {microseconds(size.torch_us)}")
    return f"{'. '.join(told)}." if told else ""


def _survival(measured: Measured) -> str:
    """The best under the first attack, and the dense one."""
    if not measured.attacked:
        return ""
    attack = next(iter(measured.attacked))
    best = max(measured.groups, key=lambda group: measured.survival(group).mean)
    told = f"Attacked by {attack_in_words(measured.task, attack)}, {best.name} keeps "
    told += measured.spelled(measured.survival(best))
    if measured.dense is not None and measured.dense.name != best.name:
        told += f", {measured.dense.name} {measured.spelled(measured.survival(measured.dense))}"
    return f"{told}."


def _picture(measured: Measured) -> str:
    """Bars in five panels; every run has its colour."""
    panels, spoken = [], []
    for title, rows in _panels(measured).items():
        rows = [row for row in rows if math.isfinite(row.found.mean)]
        if rows:
            panels.append(_panel(title, rows))
            spoken.append(f"{title}: " + ", ".join(f"{row.group.name} {row.text}" for row in rows))
    legend = "".join(
        f'<li><i class="c{group.colour % COLOURS}"></i>{html.escape(group.name)}</li>' for group in measured.groups
    )
    label = html.escape("; ".join(spoken))
    return (
        f'<div class="panels" role="img" aria-label="{label}">{"".join(panels)}</div><ul class="legend">{legend}</ul>'
    )


def _panels(measured: Measured) -> dict[str, list[_Row]]:
    groups, sizes = measured.groups, measured.sizes
    label = measured.metric.label
    found = {
        "weights left": [_Row(g, Interval(float(g.kept)), f"{g.kept:,}") for g in groups],
        "file, lossless": [
            _Row(g, Interval(size / 1024), f"{size / 1024:,.1f} KiB")
            for g in groups
            if (size := sizes[g.name].packed.get("float32"))
        ],
        "one sample": [
            _Row(g, Interval(sizes[g.name].pack_us), microseconds(sizes[g.name].pack_us))
            for g in groups
            if math.isfinite(sizes[g.name].pack_us)
        ],
        label: [_Row(g, (one := g.metric(measured.name)), measured.spelled(one)) for g in groups],
    }
    if measured.attacked:
        rows = [_Row(g, (one := measured.survival(g)), measured.spelled(one)) for g in groups]
        return {**found, f"{label} under attack": rows}
    return found


def _panel(title: str, rows: Sequence[_Row]) -> str:
    most = max(max(row.found.mean, row.found.high if row.found.known else 0.0) for row in rows)
    full = most if most > 0 else 1.0

    def share(value: float) -> float:
        return 100 * min(max(value / full, 0.0), 1.0)

    parts = []
    for row in rows:
        mark = ""
        if row.found.known:
            low, high = share(row.found.low), share(row.found.high)
            mark = f'<u style="left:{low:.1f}%;width:{max(high - low, 0.5):.1f}%"></u>'
        tip = html.escape(f"{row.group.name}: {title} {row.text}")
        parts.append(
            f'<div class="track" data-tip="{tip}"><i class="c{row.group.colour % COLOURS}" '
            f'style="width:{max(share(row.found.mean), 0.6):.1f}%"></i>{mark}</div><span>{html.escape(row.text)}</span>'
        )
    return f'<div class="panel"><b>{html.escape(title)}</b>{"".join(parts)}</div>'
