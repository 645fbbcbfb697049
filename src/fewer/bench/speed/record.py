"""Curves as a table, a record for results/ and a picture."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fewer.bench.overview import hardware
from fewer.bench.speed.curve import Curve
from fewer.bench.speed.peers import ONNX
from fewer.core.files.atomic import write_atomically, write_json
from fewer.core.machine.versions import origin

__all__ = ["COMMAND", "finished", "join", "picture", "record", "write"]

COMMAND = "python -m fewer.bench.speed --out results/bench-speed.json"
_MEASURED = ("kernels/*.[ch]", "images/*.py", "runtime/*.py")  # sources on which times depend
_PEERS = ("onnxruntime", "openvino", "torch", "numpy")
_TOLD = (0.2, 0.1, 0.05, 0.02)
_COLUMNS = ["network", "batch", *(f"{100 * (1 - d):.3g} %" for d in _TOLD), "break-even density", "us at 90 %"]
_NOTES = [
    "One thread, processor time, medians of turns; each row's network, its packs at all sparsities and its peers were "
    "timed in one run. The number is how many times faster the pack is than onnxruntime with the same network dense.",
    "The same share of the largest first weights of every matrix and kernel is kept; shipped packs are as they are.",
    "Break-even: the density up to which the pack is not slower, on lines between 2, 5, 10, 20, 30, 50 and 100 %.",
]


def _made_by(*, quick: bool) -> dict[str, Any]:
    """What curves of one file have in common: sources, libraries, machine, and how long was measured."""
    packs = Path(__file__).parents[2] / "packs"
    sources = sorted(path for pattern in _MEASURED for path in packs.glob(pattern))
    digest = hashlib.blake2b(b"".join(path.read_bytes() for path in sources), digest_size=8).hexdigest()
    versions = {name: _version(name) for name in _PEERS}
    return {"sources": digest, "versions": versions, "hardware": hardware(), "quick": quick}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _before(path: Path, *, quick: bool) -> list[dict[str, Any]]:
    found = json.loads(path.read_text()) if path.exists() else {}
    same = found.get("made_by") == _made_by(quick=quick)
    curves: list[dict[str, Any]] = found["curves"] if same else []
    return curves


def finished(path: Path, *, quick: bool) -> set[tuple[str, int]]:
    """Networks and batches that a file has from these sources, libraries and this machine."""
    return {(one["name"], one["batch"]) for one in _before(path, quick=quick)}


def join(path: Path, curves: Sequence[Curve], *, quick: bool = False) -> list[dict[str, Any]]:
    """Curves added to those of a file that was made alike, in whose place they come where it has them."""
    new = [_as_json(one) for one in curves]
    names = {(one["name"], one["batch"]) for one in new}
    return [one for one in _before(path, quick=quick) if (one["name"], one["batch"]) not in names] + new


def _as_json(one: Curve) -> dict[str, Any]:
    return {
        "name": one.name, "batch": one.batch, "error": one.error, "break_even": one.break_even, "load": _load(),
        "seconds": {f"{density:.4g}": value for density, value in one.ours.items()},
        "over_all_layers": {f"{density:.4g}": value for density, value in one.together.items()},
        "peers": dict(one.theirs),
    }  # fmt: skip


def _load() -> float:
    """How many processes want a core, over the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def _ratio(one: Mapping[str, Any], density: str, peer: str = ONNX) -> float | None:
    seconds = one["seconds"].get(density)
    return None if seconds is None or peer not in one["peers"] else float(one["peers"][peer] / seconds)


def _cells(one: Mapping[str, Any]) -> list[str]:
    ratios = [_ratio(one, f"{density:.4g}") for density in _TOLD]
    even = "none" if one["break_even"] is None else f"{one['break_even']:.2f}"
    shown = ["" if value is None else f"{value:.2f}x" for value in ratios]
    return [one["name"], str(one["batch"]), *shown, even, f"{1e6 * one['seconds'].get('0.1', float('nan')):.4g}"]


def record(curves: Sequence[Mapping[str, Any]], *, quick: bool = False) -> dict[str, Any]:
    """What results/ keeps: a table against onnxruntime, the shipped packs, the worst and the best row, all numbers."""
    drawn = [one for one in curves if "0.1" in one["seconds"] and len(one["seconds"]) > 1]
    own = [one for one in curves if len(one["seconds"]) == 1]
    rows = [_cells(one) for one in drawn] + [_shipped(one) for one in own]
    told = [(one, f"{d:.4g}", "") for one in drawn for d in _TOLD]
    told += [(one, next(iter(one["seconds"])), "shipped ") for one in own]
    ranked = sorted(told, key=lambda entry: _ratio(*entry[:2]) or 0.0)
    readme = [
        [kind + one["name"], str(one["batch"]), f"{100 * (1 - float(d)):.3g} %", f"{_ratio(one, d) or 0.0:.2f}x"]
        for one, d, kind in ranked[:3] + ranked[-3:]
    ]
    return {
        "study": "bench speed", "place": 1, "command": COMMAND,
        "hardware_in_words": f"{hardware()}, processor time", **origin(),
        "title": "Packs against onnxruntime with the same network dense: times faster, one thread",
        "columns": _COLUMNS, "rows": rows, "notes": [*_NOTES, *_circumstances(curves, quick)],
        "readme": {"columns": ["the three worst and the three best", "batch", "sparsity", "times onnxruntime"],
                   "rows": readme},
        "curves": list(curves), "made_by": _made_by(quick=quick),
    }  # fmt: skip


def _circumstances(curves: Sequence[Mapping[str, Any]], quick: bool) -> list[str]:
    """How busy the machine was, and what was left out."""
    loads = [one["load"] for one in curves]
    told = [f"Other work kept the machine busy at a load of {min(loads):.1f} to {max(loads):.1f}."] if loads else []
    compiled = "Three turns each, without torch.compile (`--quick`)." if quick else "torch.compile at batch 1 alone."
    return [*told, compiled]


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


def _place(one: Mapping[str, Any]) -> tuple[bool, str, int]:
    return len(one["seconds"]) == 1, one["name"], one["batch"]


def write(path: Path, curves: Sequence[Curve], *, quick: bool = False) -> dict[str, Any]:
    """The record with these curves in it, and beside it a page with a picture for each size of batch."""
    from fewer.report.page import Page, figure

    made = record(sorted(join(path, curves, quick=quick), key=_place), quick=quick)
    write_json(path, made)
    page = Page("Speed against sparsity", f"{COMMAND}; {made['hardware_in_words']}.")
    for batch in sorted({one["batch"] for one in made["curves"]}):
        page.add(f"Batch {batch}", figure(picture(made["curves"], batch), "One is as fast as the dense network."))
    write_atomically(path.with_suffix(".html"), page.html().encode())
    return made
