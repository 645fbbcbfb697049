"""docs/fewer.png, the picture above the fold: in each of the four fields the same job with less, from kept results; and
each field's part of it, with which the page of that system begins."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .records import ROOT

__all__ = ["FIELDS", "PICTURES", "drawn", "numbers", "stale"]

FIELDS = ("vision", "cellfree", "control", "nowcast")
PICTURES: dict[Path, tuple[str, ...]] = {  # and the fields they show
    ROOT / "docs" / "fewer.png": FIELDS,
    **{ROOT / "docs" / f"fewer-{field}.png": (field,) for field in FIELDS},
}
OURS, OTHERS, INK = "#0b6e6e", "#7b8794", "#1f2933"
Records = Mapping[str, dict[str, Any]]
Panel = dict[str, Any]
Point = tuple[float, float, str, float, float]
OURS_OF_NOWCAST = "ours: total [95 %]"


def numbers(records: Records) -> dict[str, Panel]:
    """Everything the picture says, panel by panel: points of (x, y, name, from, to), ours apart from others."""
    return {
        "vision": _vision(records["vision-lightest"]),
        "cellfree": _cellfree(records["cellfree-selectors"]),
        "control": _control(records["control-fig1"]),
        "nowcast": _nowcast(records["nowcast-longer"]),
    }


def _vision(record: dict[str, Any]) -> Panel:
    rows = [dict(zip(record["columns"], row)) for row in record["rows"]]
    dense = max((row for row in rows if row["recipe"] == "dense"), key=lambda row: row["kept"])
    small = min((row for row in rows if row["recipe"] == "gradual lamp, high contrast"), key=lambda row: row["kept"])
    light = [row for row in rows if row["recipe"] == "gradual magnitude, high contrast" and row["kept"] > small["kept"]]

    def point(row: dict[str, Any], name: str) -> Point:
        mean, spread = map(float, row["PGD-40"].split(" ± "))
        return row["kept"], mean, name, mean - spread, mean + spread

    ours, theirs = (
        point(small, f"ours: {small['kept']:,} weights"),
        point(dense, f"hardened {dense['network']}, dense: {dense['kept']:,}"),
    )
    return {
        "title": f"Vision: {theirs[0] / ours[0]:.0f} times fewer weights,\n"
        f"{'more' if ours[1] > theirs[1] else 'less'} digits right under attack",
        "across": f"weights kept (MNIST, PGD-40 at 0.3; ± over {small['seeds']} seeds;\n"
        "ours: a network of other layers, behind high contrast)",
        "up": "right under attack, %",
        "ours": [ours, *(point(row, f"ours: {row['kept']:,} weights") for row in light)],
        "others": [theirs],
    }  # fmt: skip


def _cellfree(record: dict[str, Any]) -> Panel:
    rows = [dict(zip(record["columns"], row)) for row in record["rows"]]
    size, choice = rows[0]["access points"], rows[0]["candidates"]
    first = {row["selector"]: row for row in rows
             if (row["access points"], row["candidates"], row["error in dB"]) == (size, choice, 0.0)}  # fmt: skip

    def bar(name: str, said: str) -> tuple[float, str]:
        return float(first[name]["AP without master"].split(" ")[0]), said

    return {
        "title": f"Cell-free radio: 3 measurements\ninstead of {size} find who should serve",
        "across": f"average precision beside the strongest, 1 is perfect\n({size} access points, {choice} candidates)",
        "ours": [bar("kriging", "ours, kriging"),
                 *([bar("distilled", "ours, kriging in a network")] if "distilled" in first else []),
                 bar("local", "ours, local network")],
        "others": [bar("the paper's network", "the paper's network"), bar("nearest 3", "the nearest three")],
        "all": bar("ceiling", f"knowing all {size}"),
    }  # fmt: skip


def _control(record: dict[str, Any]) -> Panel:
    steps = [column for column in record["columns"] if column.removesuffix(" %").isdigit()]
    lines = {}
    for row in (dict(zip(record["columns"], row)) for row in record["rows"]):
        cells = {step: row[step].split(" ")[0] for step in steps if row[step] != "not trained"}
        dense = float(cells["0 %"])
        lines[f"{row['environment']} {row['algorithm']}"] = [
            (float(step.split()[0]), 100 * float(cell) / dense) for step, cell in cells.items()
        ]
    at_95 = [dict(line)[95.0] for line in lines.values()]
    return {
        "title": f"Control: 95 % of the weights removed,\n{min(at_95):.0f} to {max(at_95):.0f} % of the score kept",
        "across": f"weights removed before training (SNIP), %;\nmean of {record['details']['seeds']} seeds",
        "up": "score, % of the dense network's", "lines": lines,
    }  # fmt: skip


def _nowcast(record: dict[str, Any]) -> Panel:
    names = {
        "baseline": "baseline",
        "improved": "U-Net",
        "swin": "Swin-UNETR",
        "vivit": "ViViT",
        "drift": "ours, upwind",
    }
    models = {key: record["details"][key] for key in names}
    rows = [dict(zip(record["columns"], row)) for row in record["rows"]]

    def point(key: str, model: dict[str, Any]) -> Point:
        total, end = model["at_threshold"]["total"], f", threshold {model['threshold']:.2f} (validation)"
        told = next(row[OURS_OF_NOWCAST] for row in rows
                    if row["model"].endswith(end) and row[OURS_OF_NOWCAST].startswith(f"{total:.3f} "))  # fmt: skip
        low, high = map(float, told.partition("[")[2].rstrip("]").split(", "))
        return model["parameters"] / 1e6, total, names[key], low, high

    points = {key: point(key, model) for key, model in models.items()}
    best = max((key for key in names if key != "drift"), key=lambda key: points[key][1])
    better = "better rain forecasts" if points["drift"][1] > points[best][1] else "rain forecasts no better"
    return {
        "title": f"Nowcasting: {points[best][0] / points['drift'][0]:.0f} times fewer weights,\n{better}",
        "across": "million weights (generated weather, 60 pixels;\nbars: 95 % intervals)",
        "up": "8 hours of rain in the right place (IoU)",
        "ours": [points["drift"]], "others": [points[key] for key in names if key != "drift"],
    }  # fmt: skip


def _digest(panels: dict[str, Panel]) -> str:
    return hashlib.sha256(json.dumps(panels, sort_keys=True).encode()).hexdigest()


def stale(records: Records) -> list[Path]:
    """The pictures in docs/ that were not drawn from these results."""
    from PIL import Image

    found, panels = [], numbers(records)
    for path, fields in PICTURES.items():
        told = ""
        if path.exists():
            with Image.open(path) as image:
                told = str(image.info.get("Description"))
        if told != _digest({field: panels[field] for field in fields}):
            found.append(path)
    return found


def drawn(path: Path, records: Records) -> bytes:
    """One of them as PNG, which says in its description what it was drawn from."""
    from matplotlib.figure import Figure

    every = numbers(records)
    panels = {field: every[field] for field in PICTURES[path]}
    rows, columns, size = (2, 2, (9.4, 7.6)) if len(panels) > 1 else (1, 1, (5.6, 3.7))
    figure = Figure(figsize=size, dpi=150, layout="constrained")  # letters of 10 points can be read in a README
    for axes, (name, panel) in zip(figure.subplots(rows, columns, squeeze=False).flat, panels.items()):
        {"cellfree": _bars, "control": _lines}.get(name, _points)(axes, panel)
        axes.set_title(panel["title"], loc="left", fontsize=13, fontweight="bold", color=INK)
        axes.set_xlabel(panel["across"], color=INK)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK)
    written = io.BytesIO()
    figure.savefig(written, format="png", metadata={"Software": None, "Description": _digest(panels)})
    return written.getvalue()


def _points(axes: Any, panel: Panel) -> None:
    axes.set_xscale("log")
    axes.set_ylabel(panel["up"], color=INK)
    for kind, colour, size in (("others", OTHERS, 70), ("ours", OURS, 150)):
        crowd = len(panel[kind])
        for rank, (x, y, name, low, high) in enumerate(sorted(panel[kind]), 1):  # the rightmost has room on its right
            axes.vlines(x, low, high, color=colour, linewidth=2)
            axes.scatter([x], [y], s=size, color=colour, zorder=3)
            beside = {"xytext": (9, -3), "ha": "left"} if 1 < crowd == rank else {"xytext": (-9, -3), "ha": "right"}
            place = beside if kind == "others" else {"xytext": (10, 8), "ha": "left"}
            axes.annotate(name, (x, y), textcoords="offset points", color=INK, fontsize=10, **place)
    axes.margins(x=0.22, y=0.28)
    axes.grid(axis="y", color="#e4e7eb")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.xaxis.set_minor_formatter(lambda value, _: "")


def _bars(axes: Any, panel: Panel) -> None:
    rows = [(*row, OURS) for row in panel["ours"]] + [(*row, OTHERS) for row in panel["others"]]
    for place, (value, name, colour) in enumerate(rows):
        axes.barh(-place, value, color=colour, height=0.66)
        x, ink = (0.01, "white") if value > 0.6 else (value + 0.01, INK)  # there may be no room within
        axes.text(x, -place, f"{name}: {value:.3f}", va="center", color=ink, fontsize=10.5, fontweight="bold")
    value, name = panel["all"]
    axes.axvline(value, color=INK, linestyle=":")
    axes.annotate(f"{name}: {value:.3f}", (value, 0.62), ha="right", va="bottom", color=INK, fontsize=10)
    axes.set_xlim(0, 1.02)
    axes.set_ylim(-len(rows) + 0.5, 1.0)
    axes.set_yticks([])


def _lines(axes: Any, panel: Panel) -> None:
    styles = {"BCQ": "--", "BC": "-"}
    colours = dict(zip(dict.fromkeys(name.split()[0] for name in panel["lines"]), (OURS, "#c05621", "#5a67d8")))
    for name, line in panel["lines"].items():
        world, algorithm = name.split()
        # dense, 90, 95 and 99 % lie evenly apart where one looks at what is left
        places = [_left(removed) for removed, _ in line]
        axes.plot(places, [share for _, share in line], styles[algorithm], color=colours[world], marker="o",
                  markersize=4, label=name)  # fmt: skip
    ticks = (0, 50, 80, 90, 95, 98, 99)
    axes.set_xticks([_left(tick) for tick in ticks], [f"{tick}" for tick in ticks])
    axes.axhline(100, color=OTHERS, linestyle=":")
    axes.set_ylabel(panel["up"], color=INK)
    axes.set_ylim(0, 120)
    axes.grid(axis="y", color="#e4e7eb")
    axes.legend(ncols=2, fontsize=9.5, frameon=False, loc="lower left")


def _left(removed: float) -> float:
    """The place of a sparsity on an axis that is logarithmic in the weights that are left."""
    import math

    return -math.log10(1 - removed / 100)
