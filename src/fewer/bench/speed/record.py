"""Curves as a table, a record for results/ and a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fewer.bench.overview import hardware
from fewer.bench.speed.curve import Curve
from fewer.bench.speed.peers import ONNX
from fewer.core.files.atomic import write_atomically, write_json

__all__ = ["COMMAND", "join", "picture", "record", "write"]

COMMAND = "python -m fewer.bench.speed"
_TOLD = (0.2, 0.1, 0.05, 0.02)
_COLUMNS = ["network", "batch", *(f"{100 * (1 - d):.3g} %" for d in _TOLD), "break-even density", "us at 90 %"]
_NOTES = [
    "One thread, processor time, medians of turns; each row's network, its packs at all sparsities and its peers were "
    "timed in one run. The number is how many times faster the pack is than onnxruntime with the same network dense.",
    "The same share of the largest first weights of every matrix and kernel is kept; shipped packs are as they are.",
    "Break-even: the density up to which the pack is not slower, on lines between 2, 5, 10, 20, 30, 50 and 100 %.",
]


def join(path: Path, curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Curves added to those of a file, in whose place they come where it has them."""
    before = json.loads(path.read_text())["curves"] if path.exists() else []
    new = [_as_json(one) for one in curves]
    names = {(one["name"], one["batch"]) for one in new}
    return [one for one in before if (one["name"], one["batch"]) not in names] + new


def _as_json(one: Curve) -> dict[str, Any]:
    return {
        "name": one.name, "batch": one.batch, "error": one.error, "break_even": one.break_even,
        "seconds": {f"{density:.4g}": value for density, value in one.ours.items()},
        "over_all_layers": {f"{density:.4g}": value for density, value in one.together.items()},
        "peers": dict(one.theirs),
    }  # fmt: skip


def _ratio(one: Mapping[str, Any], density: str, peer: str = ONNX) -> float | None:
    seconds = one["seconds"].get(density)
    return None if seconds is None or peer not in one["peers"] else float(one["peers"][peer] / seconds)


def _cells(one: Mapping[str, Any]) -> list[str]:
    ratios = [_ratio(one, f"{density:.4g}") for density in _TOLD]
    even = "none" if one["break_even"] is None else f"{one['break_even']:.2f}"
    shown = ["" if value is None else f"{value:.2f}x" for value in ratios]
    return [one["name"], str(one["batch"]), *shown, even, f"{1e6 * one['seconds'].get('0.1', float('nan')):.4g}"]


def record(curves: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What results/ keeps: a table against onnxruntime, the shipped packs, the worst and the best row, all numbers."""
    drawn = [one for one in curves if "0.1" in one["seconds"] and len(one["seconds"]) > 1]
    own = [one for one in curves if len(one["seconds"]) == 1]
    rows = [_cells(one) for one in drawn] + [_shipped(one) for one in own]
    ranked = sorted(
        ((_ratio(one, f"{d:.4g}") or 0.0, one["name"], one["batch"], d) for one in drawn for d in _TOLD),
        key=lambda entry: entry[0],
    )
    readme = [
        [name, str(batch), f"{100 * (1 - d):.3g} %", f"{ratio:.2f}x"]
        for ratio, name, batch, d in ranked[:3] + ranked[-3:]
    ]
    return {
        "study": "bench speed", "place": 1, "command": COMMAND, "hardware_in_words": f"{hardware()}, processor time",
        "title": "Packs against onnxruntime with the same network dense: times faster, one thread",
        "columns": _COLUMNS, "rows": rows, "notes": _NOTES,
        "readme": {"columns": ["the three worst and the three best", "batch", "sparsity", "times onnxruntime"],
                   "rows": readme},
        "curves": list(curves),
    }  # fmt: skip


def _shipped(one: Mapping[str, Any]) -> list[str]:
    ((density, seconds),) = one["seconds"].items()
    ratio = one["peers"][ONNX] / seconds
    told = f"{ratio:.2f}x at {100 * (1 - float(density)):.3g} %"
    return [f"shipped {one['name']}", str(one["batch"]), told, "", "", "", "", ""]


def picture(curves: Sequence[Mapping[str, Any]], batch: int) -> str:
    """Times onnxruntime against sparsity, a line for each network."""
    from fewer.report.chart import curves as drawn_curves

    lines = {
        one["name"]: [(100 * (1 - float(d)), one["peers"][ONNX] / seconds) for d, seconds in one["seconds"].items()]
        for one in curves if one["batch"] == batch and len(one["seconds"]) > 1
    }  # fmt: skip
    ordered = {name: sorted(points) for name, points in lines.items()}
    return drawn_curves(ordered, "weights removed, %", f"times onnxruntime, dense, batch {batch}", marks=True)


def write(path: Path, curves: Sequence[Curve]) -> dict[str, Any]:
    """The record with these curves in it, and beside it a page with a picture for each size of batch."""
    from fewer.report.page import Page, figure

    made = record(join(path, curves))
    write_json(path, made)
    page = Page("Speed against sparsity", f"{COMMAND}; {made['hardware_in_words']}.")
    for batch in sorted({one["batch"] for one in made["curves"]}):
        page.add(f"Batch {batch}", figure(picture(made["curves"], batch), "One is as fast as the dense network."))
    write_atomically(path.with_suffix(".html"), page.html().encode())
    return made
