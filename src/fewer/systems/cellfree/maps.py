"""The radio engineer's picture as SVG: the map with all access points, a phone, its candidates, and who serves it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from fewer.report.png import data_address, png

if TYPE_CHECKING:
    from fewer.systems.cellfree.task.arrays import Floats
    from fewer.systems.cellfree.task.selectors.selector import Selection
    from fewer.systems.cellfree.task.survey import World

__all__ = ["LEGEND", "map_of"]

_SIDE, _PIXELS = 400, 80
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
    parts += [_dot(p, 2.6, "soft") for p in place]
    parts += [f'<circle class="ring" cx="{p[0]:.1f}" cy="{p[1]:.1f}" r="8.5"/>' for p in place[true]]
    parts += [_dot(place[n], 4.6, "c0") for n in chosen]
    parts.append(_dot(here, 6.5, "c4"))
    right = len(np.intersect1d(chosen, true))
    said = f"{len(chosen)} access points chosen, {len(true)} should serve, {right} in common"
    label = html.escape(f"map of {side:g} m: {said}")
    return (
        f'<svg class="map" viewBox="0 0 {_SIDE} {_SIDE}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
        f'<p class="soft">{html.escape(said)}.</p>'
    )


def _dot(place: Floats, radius: float, kind: str) -> str:
    return f'<circle class="{kind}" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{radius}"/>'


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
