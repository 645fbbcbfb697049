"""Draws docs/rooms.svg: the rooms of the house and who imports whom, read from the source. Called by `make docs`.

A room stands above everything that it imports. An arrow that others imply is left out.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(PROJECT))

from scripts.imports import rooms  # noqa: E402

__all__ = ["PICTURE", "SOURCE", "drawn", "levels", "reduced"]

SOURCE, PICTURE = PROJECT / "src" / "fewer", PROJECT / "docs" / "rooms.svg"
WORDS = {
    "the front door": "import fewer",
    "systems/*": "one folder per field",
    "cli": "fewer VERB",
    "studies": "tables of the papers",
    "bench": "speed and size",
    "report": "runs as a page",
    "serve": "packs behind HTTP",
    "sweep": "grids of trainings",
    "run": "one training",
    "custom": "a user's own model",
    "zoo": "trained packs",
    "attack": "and hardening",
    "ensemble": "and voting",
    "packs": "file and runtime",
    "pruning": "which weights stay",
    "sparse": "training on kept ones",
    "systems/*/task": "data, networks, losses",
    "core": "contract, engines, files",
}
_WIDE, _HIGH, _GAP, _STOREY, _EDGE = 132, 40, 18, 76, 20
_STYLE = """
  rect.paper { fill: #ffffff } rect.room { fill: #eef3f8; stroke: #44617e }
  text { font: 13px sans-serif; fill: #16222e; text-anchor: middle } text.words { font-size: 10px; fill: #44556a }
  path { fill: none; stroke: #7b8ea3; stroke-width: 1.2 } marker path { fill: #7b8ea3; stroke: none }
  @media (prefers-color-scheme: dark) {
    rect.paper { fill: #12181f } rect.room { fill: #1f2b38; stroke: #86a5c4 }
    text { fill: #e6edf4 } text.words { fill: #a9bacb } path { stroke: #7f93a8 } marker path { fill: #7f93a8 }
  }
"""

Arrows = Mapping[str, set[str]]


def reduced(arrows: Arrows) -> dict[str, set[str]]:
    """Without every arrow that a longer way along the others implies."""

    def below(name: str) -> set[str]:
        return arrows[name].union(*(below(other) for other in arrows[name]))

    return {
        name: {other for other in others if not any(other in below(step) for step in others)}
        for name, others in arrows.items()
    }


def levels(arrows: Arrows) -> dict[str, int]:
    """How many rooms lie below each on the longest way down."""

    def level(name: str) -> int:
        return max((level(other) + 1 for other in arrows[name]), default=0)

    return {name: level(name) for name in arrows}


def _stepped(arrows: Arrows, level: dict[str, int]) -> list[list[str]]:
    """Every arrow as a chain with a stop on each floor, so that it passes between rooms and not behind them."""
    chains = []
    for name in sorted(arrows):
        for other in sorted(arrows[name]):
            stops = [f"{name} > {other} {floor}" for floor in range(level[name] - 1, level[other], -1)]
            level |= {stop: level[name] - 1 - step for step, stop in enumerate(stops)}
            chains.append([name, *stops, other])
    return chains


def _floors(level: dict[str, int], chains: list[list[str]]) -> list[list[str]]:
    """Who stands on each floor, from left to right: near what they are joined to."""
    near: dict[str, list[str]] = {name: [] for name in level}
    for chain in chains:
        for one, two in itertools.pairwise(chain):
            near[one].append(two)
            near[two].append(one)
    floors = [sorted(name for name in level if level[name] == floor) for floor in range(max(level.values()) + 1)]
    for _ in range(12):
        for floor in floors:
            place = {name: x for row in floors for name, x in _places(row).items()}
            floor.sort(key=lambda name: (sum(place[other] for other in near[name]) / max(len(near[name]), 1), name))
    return floors


def _places(floor: list[str]) -> dict[str, float]:
    """Where the middle of each lies, the middle of the floor being 0."""
    widths = [_GAP if " > " in name else _WIDE for name in floor]
    left = -(sum(widths) + _GAP * (len(floor) - 1)) / 2
    return {name: left + sum(widths[:index]) + _GAP * index + widths[index] / 2 for index, name in enumerate(floor)}


def drawn(source: Path) -> str:
    """The picture as SVG."""
    found = {name: others for name, others in rooms(source).items() if name not in ("systems", "__main__")}
    arrows = reduced(found)
    level = levels(arrows)
    chains = _stepped(arrows, level)
    floors = _floors(level, chains)
    wide = max(2 * max(_places(floor).values()) + _WIDE for floor in floors) + 2 * _EDGE
    high = len(floors) * _STOREY - (_STOREY - _HIGH) + 2 * _EDGE
    x = {name: wide / 2 + place for floor in floors for name, place in _places(floor).items()}
    y = {name: _EDGE + (len(floors) - 1 - level[name]) * _STOREY for name in level}
    lines = [_way(chain, x, y) for chain in chains]
    boxes = [_box(name, x[name], y[name]) for name in sorted(found)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}">',
        "<title>The rooms of fewer; an arrow points at what is imported</title>",
        f"<style>{_STYLE}</style>",
        '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z"/></marker>',
        f'<rect class="paper" width="{wide:.0f}" height="{high:.0f}"/>',
        *lines, *boxes, "</svg>", "",
    ])  # fmt: skip


def _way(chain: list[str], x: dict[str, float], y: dict[str, float]) -> str:
    """From the foot of the upper room to the top of the lower one, upright at every stop."""
    at = (x[chain[0]], y[chain[0]] + _HIGH)
    way = f"M{at[0]:.0f} {at[1]:.0f}"
    for name in chain[1:]:
        end, bend = (x[name], y[name]), (y[name] - at[1]) / 2
        way += f" C{at[0]:.0f} {at[1] + bend:.0f} {end[0]:.0f} {end[1] - bend:.0f} {end[0]:.0f} {end[1]:.0f}"
        at = end
        if name != chain[-1]:
            at = (end[0], end[1] + _HIGH)
            way += f" V{at[1]:.0f}"
    return f'<path d="{way}" marker-end="url(#tip)"/>'


def _box(name: str, x: float, y: float) -> str:
    left = x - _WIDE / 2
    return (
        f'<rect class="room" x="{left:.0f}" y="{y:.0f}" width="{_WIDE}" height="{_HIGH}" rx="5"/>'
        f'<text x="{x:.0f}" y="{y + 17:.0f}">{name}</text>'
        f'<text class="words" x="{x:.0f}" y="{y + 32:.0f}">{WORDS.get(name, "")}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(SOURCE))
