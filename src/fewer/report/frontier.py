"""The chapter of a search for the smallest network: every network that was tried, and where the chosen one stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewer.core.errors import UserError
from fewer.report.chart import curves
from fewer.report.description import metric_of, shown
from fewer.report.page import abreast, figure, table, words

__all__ = ["FRONTIER", "frontier_chapter", "frontier_runs"]

FRONTIER = "frontier.json"  # as `fewer smallest` writes it
Row = dict[str, Any]


def frontier_runs(folder: Path) -> list[Path]:
    """The runs of a search that a report shows one by one: the dense one, and the chosen one."""
    found = _read(folder)
    chosen = [found["chosen"]["run"]] if found["chosen"] else []
    return [folder / name for name in dict.fromkeys(["dense", *chosen])]


def frontier_chapter(folder: Path) -> list[str]:
    """What was asked, the curve in a picture and in numbers, and the one that was chosen."""
    found = _read(folder)
    rows = [row for row in found["curve"] if "refused" not in row]
    metric = metric_of(found["task"], rows[0]["metric"])
    chosen = found["chosen"]
    series = {
        f"{metric.label}, validation": _points(rows, "validation"),
        f"{metric.label}, test": _points(rows, "test"),
    }
    if chosen:
        series["chosen"] = _points([chosen], "validation")
    picture = curves(series, "weights removed, in percent of the prunable", metric.label, percent=metric.share,
                     marks=True)  # fmt: skip
    sizes = {"bytes of the pack": [(100 * (1 - row["share"]), row["bytes"]) for row in rows]}
    return [
        words(_asked(found)),
        abreast(
            figure(picture, "Every network that was tried; the choice is made on the validation split alone."),
            figure(curves(sizes, "weights removed, in percent", "bytes", marks=True), "What each is as a pack."),
        ),
        table(
            ["kept", "weights", "updates", f"{metric.label}, validation", "loss", "test", "bytes", "us a sample", ""],
            [_line(row, metric.share, row["run"] == (chosen or {}).get("run")) for row in found["curve"]],
        ),
    ]


def _read(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / FRONTIER).read_text())
        if not any("metric" in row for row in found["curve"]):
            raise KeyError("curve")
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(
            f"{folder / FRONTIER} without a curve", "what `fewer smallest` leaves", "run it again"
        ) from None
    return found


def _asked(found: dict[str, Any]) -> str:
    budget = next(((name, value) for name, value in (found["budget"] or {}).items() if value is not None), None)
    if budget is None or not found["chosen"]:
        return f"{len(found['curve'])} networks of a search that has not ended within a budget."
    name, row = budget[0].replace("_", " "), found["chosen"]
    return (
        f"Asked for {name} {budget[1]:g}. {len(found['curve'])} networks were tried; the chosen one keeps "
        f"{row['kept']:,} of {row['weights']:,} prunable weights and loses {row['loss']:.2%} of the dense figure on "
        "validation."
    )


def _points(rows: Sequence[Row], key: str) -> list[tuple[float, ...]]:
    return [(100 * (1 - row["share"]), row[key]) for row in rows if key in row]


def _line(row: Row, share: bool, chosen: bool) -> list[Any]:
    kept = f"{100 * row['share']:g} %"
    if "refused" in row:
        return [kept, "-", "-", "-", "-", "-", "-", "-", row["refused"]]
    test = shown(row["test"], share) if "test" in row else "-"
    return [kept, f"{row['kept']:,}", f"{row['steps']:,}", shown(row["validation"], share), f"{row['loss']:.2%}", test,
            f"{row['bytes']:,}", f"{row['microseconds']:.1f}", "chosen" if chosen else ""]  # fmt: skip
