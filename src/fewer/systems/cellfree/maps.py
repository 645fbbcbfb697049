"""The radio engineer's picture as SVG: the map with all access points, a phone, its candidates, and who serves it."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

import numpy as np

from fewer.report.png import data_address, png

if TYPE_CHECKING:
    from fewer.systems.cellfree.task.arrays import Floats, Integers
    from fewer.systems.cellfree.task.selectors.selector import Selection
    from fewer.systems.cellfree.task.survey import World
    from fewer.systems.cellfree.task.world.deployment import Deployment

__all__ = ["LEGEND", "map_of"]

_SIDE, _PIXELS = 400, 80
_LETTER = 8.0  # width of a letter in the map's pixels, rather too wide
Box = tuple[float, float, float, float]  # left, top, right, bottom
LEGEND = (
    '<ul class="legend"><li><i class="c4"></i>phone</li><li><i class="c0"></i>chosen to serve</li>'
    '<li><i class="c2"></i>ring: should serve</li><li><i class="c1"></i>dashed: the cluster of candidates</li>'
    "<li>grey: the other access points</li></ul>"
)


def map_of(world: World, phone: Floats, selection: Selection) -> str:
    """One phone: lines to the chosen access points, rings around those that should serve, darker where the master
    is heard better."""
    deployment = world.deployment
    side, corner = deployment.side_m, np.array(deployment.corner_m)

    def drawn(places: Floats) -> Floats:
        inside = (places - corner) / side
        return _SIDE * np.stack([inside[..., 0], 1 - inside[..., 1]], axis=-1)  # north is up

    place, here = drawn(deployment.access_points), drawn(np.asarray(phone, dtype=np.float64))
    candidates, chosen = selection.candidates[0], selection.access_points()
    gain = deployment.gain_db(np.asarray(phone, dtype=np.float64)[None])[0]
    true = np.flatnonzero(gain.max() - gain < world.settings.threshold_db)
    parts = [_heard(world, int(candidates[0])), _hull(place[candidates])]
    parts += [
        f'<line class="line c0" x1="{here[0]:.1f}" y1="{here[1]:.1f}" x2="{place[n, 0]:.1f}" y2="{place[n, 1]:.1f}"/>'
        for n in chosen
    ]
    parts += [_dot(p, 2.6, "soft", deployment.name(n)) for n, p in enumerate(place)]
    parts += [f'<circle class="ring" cx="{p[0]:.1f}" cy="{p[1]:.1f}" r="8.5"/>' for p in place[true]]
    parts += [_dot(place[n], 4.6, "c0", f"{deployment.name(int(n))}, chosen") for n in chosen]
    parts.append(_dot(here, 6.5, "c4", "the phone"))
    named = np.union1d(chosen, true).astype(int)
    marks = [(x - 9, y - 9, x + 9, y + 9) for x, y in [*place[named].tolist(), here.tolist()]]
    marks.append((0.0, _SIDE - 30.0, 12 + 0.5 * _SIDE, float(_SIDE)))  # the scale
    parts += [*_labels(place[named], [deployment.name(int(n)) for n in named], marks), _scale(side)]
    said = _said(deployment, chosen, true)
    label = html.escape(f"map of {side:,.0f} m x {side:,.0f} m: {said}")
    return (
        f'<svg class="map" viewBox="0 0 {_SIDE} {_SIDE}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
        f'<p class="soft">{html.escape(said)}.</p>'
    )


def _said(deployment: Deployment, chosen: Integers, true: Integers) -> str:
    """Who was chosen and who should have been, by name."""
    said = f"Chosen: {_names(deployment, chosen)}"
    missed, needless = np.setdiff1d(true, chosen), np.setdiff1d(chosen, true)
    said += f". Missed: {_names(deployment, missed)}" if len(missed) else ""
    said += f". Needless: {_names(deployment, needless)}" if len(needless) else ""
    return said if len(missed) or len(needless) else f"{said}: all that should serve, and no other"


def _names(deployment: Deployment, access_points: Integers) -> str:
    return ", ".join(deployment.name(int(n)) for n in access_points)


def _dot(place: Floats, radius: float, kind: str, said: str) -> str:
    title = f"<title>{html.escape(said)}</title>"
    return f'<circle class="{kind}" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{radius}">{title}</circle>'


def _labels(points: Floats, said: list[str], taken: list[Box]) -> list[str]:
    """Names beside their access points, each where it covers least of what is there already and of other names."""
    found = []
    for place, name in zip(points, said):
        wide = _LETTER * len(name)
        sides = [
            (place[0] + 12, place[1] + 4, "start"), (place[0] - 12, place[1] + 4, "end"),
            (place[0], place[1] - 13, "middle"), (place[0], place[1] + 21, "middle"),
        ]  # fmt: skip
        boxes = [_box(x, y, wide, anchor) for x, y, anchor in sides]
        costs = [sum(_covered(box, other) for other in taken) + 4 * _outside(box) for box in boxes]
        best = int(np.argmin(costs))
        x, y, anchor = sides[best]
        taken.append(boxes[best])
        found.append(f'<text class="halo" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(name)}</text>')
    return found


def _box(x: float, y: float, wide: float, anchor: str) -> Box:
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return left, y - 11, left + wide, y + 4


def _covered(one: Box, other: Box) -> float:
    across = min(one[2], other[2]) - max(one[0], other[0])
    return max(across, 0.0) * max(min(one[3], other[3]) - max(one[1], other[1]), 0.0)


def _outside(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1]) - _covered(box, (0.0, 0.0, _SIDE, _SIDE))


def _scale(side_m: float) -> str:
    """A line of a round length, with its metres."""
    metres = 2 * 10 ** math.floor(math.log10(side_m / 4))
    text = f"{metres / 1000:g} km" if metres >= 1000 else f"{metres:g} m"
    end = 12 + _SIDE * metres / side_m
    line = f'x1="12" x2="{end:.1f}" y1="{_SIDE - 10}" y2="{_SIDE - 10}" stroke="currentColor" stroke-width="2"'
    name = f'class="halo" x="{(12 + end) / 2:.1f}" y="{_SIDE - 15}" text-anchor="middle"'
    return f"<line {line}/><text {name}>{text}</text>"


def _heard(world: World, master: int) -> str:
    """How strongly the master is heard everywhere, as a pale picture under the map."""
    grid = world.deployment.grid(_PIXELS)
    gain = world.deployment.gain_to(grid, np.full((len(grid), 1), master)).reshape(_PIXELS, _PIXELS)[::-1]
    low, high = np.quantile(gain, 0.05), gain.max()
    level = np.clip((gain - low) / max(high - low, 1e-9), 0, 1)
    picture = png(np.round(255 * (1 - level)).astype(np.uint8))
    return f'<image href="{data_address(picture)}" width="{_SIDE}" height="{_SIDE}" opacity="0.22"/>'


def _hull(points: Floats) -> str:
    """The convex hull of the cluster, by the monotone chain."""
    order = sorted({(float(x), float(y)) for x, y in points})

    def half(along: list[tuple[float, float]]) -> list[tuple[float, float]]:
        chain: list[tuple[float, float]] = []
        for x, y in along:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], (x, y)) <= 0:
                chain.pop()
            chain.append((x, y))
        return chain[:-1]

    shape = " ".join(f"{x:.1f},{y:.1f}" for x, y in half(order) + half(order[::-1]))
    return f'<polygon class="hull" points="{shape}"/>'


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
