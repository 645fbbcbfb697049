"""The radio engineer's picture as SVG: the map with all access points, a phone, its candidates, and who serves it."""

from __future__ import annotations

import html
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
    parts += [_name(place[n], deployment.name(int(n))) for n in np.union1d(chosen, true)]
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


def _name(place: Floats, said: str) -> str:
    """Beside its access point, on the side where there is room."""
    left = place[0] > 0.7 * _SIDE
    at, anchor = (place[0] - 12, "end") if left else (place[0] + 12, "start")
    y = min(max(place[1] + 4, 12.0), _SIDE - 5.0)
    return f'<text class="halo" x="{at:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(said)}</text>'


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
