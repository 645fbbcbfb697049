"""Forecasts as maps: a graticule where the place is known, a colour bar, a scale in kilometres, and the same moving."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import MissingExtra
from fewer.report.figure import png
from fewer.systems.nowcast.task.files.own.grid import Grid

__all__ = ["Chart", "animation", "picture"]

Field = NDArray[np.floating[Any]]

_PANELS = 8  # at most, spread over the lead times
_SIDE = 700  # pixels of a field that are drawn; larger maps are thinned
_UNSEEN, _LINE = "#c4c6c8", "#5a6470"
_RATES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
_RATE_COLOURS = ("#d3e6f5", "#a9cfe9", "#6faed9", "#3a84c0", "#2aa35a", "#f2d43b", "#f08a24", "#d23b2f", "#8b1a6b")
_SPACINGS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30)  # degrees between lines
_LENGTHS = (5, 10, 20, 50, 100, 200, 500, 1000)  # km of the scale
_A_SECOND = 4


@dataclass(frozen=True)
class Chart:
    """What is drawn: `observed` (height, width) in mm/h if there is any, then fields (leads, height, width)."""

    grid: Grid
    fields: Field
    kind: str  # "probability" or "rate"
    titles: Sequence[str]  # one a lead time
    observed: Field | None = None
    observed_title: str = ""
    title: str = ""


def picture(chart: Chart) -> bytes:
    """A PNG: what was last seen, then lead times, at most eight panels in all."""
    from matplotlib.figure import Figure

    chosen = _chosen(len(chart.fields), _PANELS - (chart.observed is not None))
    count = len(chosen) + (chart.observed is not None)
    columns = min(count, 4)
    rows = -(-count // columns)
    height, width = chart.grid.shape
    tall = 3.1 * min(max(height / width, 0.5), 1.8)
    figure = Figure(figsize=(3.2 * columns + 1.0, (tall + 0.45) * rows + 0.5), layout="constrained")
    panels = list(np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel())
    drawn = []
    if chart.observed is not None:
        drawn.append(("rate", _panel(panels.pop(0), chart, chart.observed, "rate", chart.observed_title)))
    for lead in chosen:
        drawn.append((chart.kind, _panel(panels.pop(0), chart, chart.fields[lead], chart.kind, chart.titles[lead])))
    for panel in panels:
        panel.set_axis_off()
    shared = dict(drawn)  # one bar for each kind
    for kind, image in shared.items():
        bar = figure.colorbar(image, ax=figure.axes[: rows * columns], shrink=0.8, aspect=30, pad=0.01)
        bar.set_label("probability of rain (0.2 mm/h or more)" if kind == "probability" else "rain, mm/h", fontsize=8)
        if kind == "rate":
            bar.set_ticks(list(_RATES), labels=[f"{rate:g}" for rate in _RATES])
        bar.ax.tick_params(labelsize=7)
    figure.suptitle(chart.title, fontsize=10)
    return png(figure, dpi=120)


def animation(chart: Chart) -> bytes:
    """An animated GIF: the last image and every lead time, each with the same lines around it."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("no pillow", "it installed, to draw", "pip install 'fewer[nowcast]'") from None
    frames = []
    if chart.observed is not None:
        seen = Chart(chart.grid, chart.observed[None], "rate", [chart.observed_title], title=chart.title)
        frames.append(_still(seen))
    for lead in range(len(chart.fields)):
        one = Chart(chart.grid, chart.fields[lead : lead + 1], chart.kind, [chart.titles[lead]], title=chart.title)
        frames.append(_still(one))
    images = [Image.open(io.BytesIO(frame)).convert("RGB") for frame in frames]
    size = images[0].size  # titles of another length must not make another size
    images = [image if image.size == size else image.resize(size) for image in images]
    memory = io.BytesIO()
    images[0].save(
        memory, "GIF", save_all=True, append_images=images[1:], duration=1000 // _A_SECOND, loop=0, optimize=False
    )
    return memory.getvalue()


def _still(chart: Chart) -> bytes:
    from matplotlib.figure import Figure

    height, width = chart.grid.shape
    figure = Figure(figsize=(5.6, 4.4 * min(max(height / width, 0.6), 1.5) + 0.6), layout="constrained")
    panel = figure.subplots()
    image = _panel(panel, chart, chart.fields[0], chart.kind, chart.titles[0])
    bar = figure.colorbar(image, ax=panel, shrink=0.85)
    bar.set_label("probability" if chart.kind == "probability" else "mm/h", fontsize=8)
    if chart.kind == "rate":
        bar.set_ticks(list(_RATES), labels=[f"{rate:g}" for rate in _RATES])
    return png(figure, dpi=90)


def _chosen(leads: int, most: int) -> list[int]:
    if leads <= most:
        return list(range(leads))
    return sorted({round((k + 1) * leads / most) - 1 for k in range(most)})


def _panel(panel: Any, chart: Chart, field: Field, kind: str, title: str) -> Any:
    from matplotlib.colors import BoundaryNorm, ListedColormap

    thin = max(1, -(-max(field.shape) // _SIDE))
    shown = field[::thin, ::thin]
    grid = chart.grid
    (across, down), x, y = grid.pixel, grid.x, grid.y
    extent = (x[0] - across / 2, x[-1] + across / 2, y[-1] - down / 2, y[0] + down / 2)
    panel.set_facecolor(_UNSEEN)
    style: dict[str, Any] = {"extent": extent, "origin": "upper", "interpolation": "nearest"}
    if kind == "probability":
        # nothing likely is white, so that the lines below it stay visible
        image = panel.imshow(np.ma.masked_invalid(shown), vmin=0, vmax=1, cmap="Blues", **style)
    else:
        colours = ListedColormap(_RATE_COLOURS[:-1]).with_extremes(under="white", over=_RATE_COLOURS[-1], bad=_UNSEEN)
        norm = BoundaryNorm(_RATES, len(_RATES) - 1)
        image = panel.imshow(np.ma.masked_invalid(shown), cmap=colours, norm=norm, **style)
    panel.set_title(title, fontsize=9)
    panel.set_xticks([])
    panel.set_yticks([])
    if grid.degrees:
        panel.set_aspect(1 / max(float(np.cos(np.deg2rad(y.mean()))), 0.1))
    panel.set_xlim(extent[0], extent[1])
    panel.set_ylim(extent[2], extent[3])
    if grid.placed:
        _graticule(panel, grid)
    _scale(panel, grid, extent)
    return image


def _graticule(panel: Any, grid: Grid) -> None:
    """Meridians and parallels as contours of longitude and latitude, named where they leave the map."""
    rows, columns = (np.linspace(0, length - 1, min(length, 60)).round().astype(int) for length in grid.shape)
    coarse = Grid(grid.x[columns], grid.y[rows], grid.projection)
    longitudes, latitudes = coarse.longitudes_latitudes()
    for values, letters in ((longitudes, "EW"), (latitudes, "NS")):
        extent = float(np.ptp(values[np.isfinite(values)])) or 1.0
        spacing = min(_SPACINGS, key=lambda step: abs(extent / step - 4))
        first, last = np.nanmin(values), np.nanmax(values)
        levels = np.arange(np.ceil(first / spacing), np.floor(last / spacing) + 1) * spacing
        if not len(levels):
            continue
        lines = panel.contour(coarse.x, coarse.y, values, levels=levels, colors=_LINE, linewidths=0.4, alpha=0.8)
        panel.clabel(lines, fmt=lambda value, letters=letters: _degrees(value, letters), fontsize=6, inline_spacing=1)


def _degrees(value: float, letters: str) -> str:
    return f"{abs(round(value, 6)):g}°{letters[0] if value >= 0 else letters[1]}"


def _scale(panel: Any, grid: Grid, extent: tuple[float, float, float, float]) -> None:
    """A bar of round kilometres in the lower left corner, as long as they are in the middle of the map."""
    width = extent[1] - extent[0]
    units_per_km = (grid.pixel[0] * grid.pixel[1]) ** 0.5 / grid.kilometres if not grid.degrees else (
        1 / (111.195 * max(float(np.cos(np.deg2rad(grid.y.mean()))), 0.1))
    )  # fmt: skip
    length = max([km for km in _LENGTHS if km * units_per_km < 0.35 * width] or [_LENGTHS[0]])
    left, bottom = extent[0] + 0.04 * width, extent[2] + 0.04 * (extent[3] - extent[2])
    panel.plot(
        [left, left + length * units_per_km], [bottom, bottom], color="black", linewidth=2, solid_capstyle="butt"
    )
    panel.annotate(
        f"{length} km", (left, bottom), (0, 3), textcoords="offset points", fontsize=6,
        bbox={"facecolor": "white", "alpha": 0.6, "pad": 0.5, "edgecolor": "none"},
    )  # fmt: skip
