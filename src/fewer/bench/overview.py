"""All benches as one table: this project against what a user would pick instead, each as a ratio of one run."""

from __future__ import annotations

import dataclasses
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewer.bench.row import Row
from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically, write_json
from fewer.core.machine.versions import origin
from fewer.core.registry import systems
from fewer.core.system import Named, imported

__all__ = ["Line", "benches", "hardware", "head", "line_text", "measure", "write"]

_OF_ALL = {
    "sparse": "packs: latency, throughput, size",
    "threads": "packs on two threads against one",
    "exported": "the C that a pack exports against the pack",
}


def benches() -> dict[str, Named]:
    """Every bench: its module, and what it compares."""
    found = {name: (f"fewer.bench.{name}", line) for name, line in _OF_ALL.items()}
    for system in systems().values():
        found |= system.benches
    return found


@dataclass(frozen=True)
class Line:
    """A row of a bench, or why there is none."""

    bench: str
    row: Row | None = None
    why: str = ""
    seconds: float = 0.0  # the whole bench took

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return dataclasses.asdict(self.row) if self.row is not None else {"what": self.bench, "why": self.why}


def measure(name: str, *, quick: bool, strict: bool = False) -> list[Line]:
    """A bench's rows; what it needs and is not here (CUDA, data, a library) is a row that says so, unless `strict`."""
    begin = time.perf_counter()
    try:
        module = imported(benches()[name][0])
        rows = module.run(quick=quick)
    except (UserError, ImportError) as error:
        if strict:
            raise
        return [Line(name, why=f"not run: {error}")]
    except Exception as error:  # a table of many does not end because one of them did
        if strict:
            raise
        return [Line(name, why=f"failed: {type(error).__name__}: {error}")]
    seconds = time.perf_counter() - begin
    lines = [Line(name, row, seconds=seconds) for row in rows] or [Line(name, why="nothing to measure here")]
    from fewer.packs.compiled import missing

    return lines + ([Line(name, why=missing())] if getattr(module, "USES_PACKS", False) and missing() else [])


def head() -> str:
    """Of the table in plain text."""
    titles = f"{'bench':<16} {'what':<66} {'ours':>10} {'theirs':>10} {'unit':<14}"
    return f"{titles} {'ratio':>8} {'required':>8}  against"


def line_text(line: Line) -> str:
    """A line of the table in plain text."""
    row = line.row
    if row is None:
        return f"{line.bench:<16} {line.why}"
    required = "" if row.required is None else f"{row.required:.3g}x"
    return (
        f"{line.bench:<16} {row.what:<66} {row.ours:>10.4g} {row.theirs:>10.4g} {row.unit:<14} "
        f"{row.ratio:>7.2f}x {required:>8}  {row.against}"
    )


def hardware() -> str:
    """What this was measured on, in words."""
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA"
    return f"{_processor()}, {device}, torch {torch.__version__.partition('+')[0]}, {torch.get_num_threads()} thread(s)"


def _processor(described: Path = Path("/proc/cpuinfo")) -> str:
    """Its name, with family and model where they are told: makers call several generations by one name."""
    try:
        first = described.read_text().partition("\n\n")[0].splitlines()
    except OSError:
        return platform.machine()
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first)}
    name = told.get("model name", platform.machine())
    return (
        f"{name} (family {told['cpu family']}, model {told['model']})" if {"cpu family", "model"} <= set(told) else name
    )


def write(folder: Path, lines: Sequence[Line], command: str) -> tuple[Path, ...]:
    """bench.json, bench.html with a chart of the ratios, and of one bench alone the file that results/ keeps."""
    from fewer.report.chart import ratios
    from fewer.report.page import Page, figure, table, words

    place = folder / "bench.json", folder / "bench.html"
    where = hardware()
    record = {
        "title": "This project against what else there is, ratios of one run", "command": command,
        "hardware_in_words": where, **origin(), "rows": [{"bench": line.bench, **line.as_dict()} for line in lines],
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    write_json(place[0], record)
    page = Page("fewer: measured against what else there is", f"{command}; {where}.")
    page.add(
        "Ratios",
        words(
            "How many times better ours is: faster, smaller, or more of what is asked. Both sides of a ratio were "
            "measured in this run; the line is 1, where neither wins."
        ),
        figure(
            ratios({f"{line.row.what}, {line.row.against}": line.row.ratio for line in lines if line.row}),
            "Ratios on a logarithmic axis.",
        ),
    )
    page.add("All rows", table(["bench", "what", "ours", "theirs", "unit", "ratio", "required", "against"],
                               [_cells(line) for line in lines]))  # fmt: skip
    write_atomically(place[1], page.html().encode())
    if len({line.bench for line in lines}) > 1:
        return place
    kept = folder / f"bench-{lines[0].bench.replace('_', '-')}.json"
    write_json(kept, _kept(lines, command, where))
    return *place, kept


def _kept(lines: Sequence[Line], command: str, where: str) -> dict[str, Any]:
    """A bench as results/ keeps it; its module may say a title, notes and a place among the others."""
    place, line = benches()[lines[0].bench]
    module = imported(place)
    return {
        "study": f"bench {lines[0].bench}", "title": getattr(module, "TITLE", line), "command": command,
        "hardware_in_words": where, **origin(),
        "columns": ["what", "ours", "theirs", "unit", "ratio", "required", "against"],
        "rows": [_spelled(one) for one in lines], "notes": list(getattr(module, "NOTES", ())),
        "place": getattr(module, "PLACE", None),
    }  # fmt: skip


def _spelled(line: Line) -> list[str]:
    what, ours, theirs, *rest = _cells(line)[1:]
    return [what, *(f"{number:.4g}" if line.row else number for number in (ours, theirs)), *rest]


def _cells(line: Line) -> list[Any]:
    row = line.row
    if row is None:
        return [line.bench, line.why, "", "", "", "", "", ""]
    required = "" if row.required is None else f"{row.required:.3g}x"
    return [line.bench, row.what, row.ours, row.theirs, row.unit, f"{row.ratio:.2f}x", required, row.against]
