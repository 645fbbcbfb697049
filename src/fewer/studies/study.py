"""Studies: a paper's tables and figures, or our own, each a function from a scale to a result.

A study is written as `def name(order: Order) -> Result`; `SCALES` says what an order's scale means. It returns a table
with the paper's numbers beside ours, and its figures; what it keeps in `out` by itself are pieces to go on from.
`reproduce` adds the command, the hardware and the versions, and writes `out/<name>.json` and the figures, never over a
file that holds more.
"""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically
from fewer.core.html_table import shown
from fewer.core.system import imported
from fewer.studies.order import Order
from fewer.studies.remarks import remarks_on

__all__ = ["Result", "hardware", "in_words", "made_on", "reproduce"]


@dataclass
class Result:
    """A table, what to read in it, and everything behind it."""

    title: str
    columns: list[str]
    rows: list[list[Any]]
    notes: list[str] = field(default_factory=list)  # how it was made
    figures: dict[str, bytes] = field(default_factory=dict)  # contents by file name
    details: dict[str, Any] = field(default_factory=dict)  # JSON-able; every single number
    remarks: list[str] = field(default_factory=list)  # what came out, computed from all the above by `reproduce`
    commands: list[str] = field(default_factory=list)  # all that make it from nothing; none: the one that asked for it
    machines: list[str] = field(default_factory=list)  # where its pieces were made, in words; none: here

    def record(self) -> dict[str, Any]:
        """As JSON keeps it: figures by their names."""
        return {part.name: getattr(self, part.name) for part in fields(self)} | {"figures": list(self.figures)}

    def _repr_html_(self) -> str:
        """For Jupyter."""
        return shown(self.title, self.columns, self.rows, [*self.remarks, *self.notes])


def hardware() -> dict[str, Any]:
    """What it ran on."""
    import torch

    found: dict[str, Any] = {"processor": _processor(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def in_words(found: dict[str, Any]) -> str:
    """As one says it beside a table."""
    threads = f"{found['threads']} thread{'s' if found['threads'] > 1 else ''}"
    return f"one {found['gpu']}" if "gpu" in found else f"{found['processor']}, {threads}"


def made_on(machines: list[str], here: str) -> str:
    """Where the numbers come from, which is not where kept pieces are put together."""
    return here if machines in ([], [here]) else f"{' and '.join(machines)} (put together on {here})"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def reproduce(order: Order) -> Result:
    """Run one study and write its JSON with the command and the hardware beside the numbers."""
    from fewer.core.machine.versions import origin

    path = order.file
    _refuse_loss(path, order.scale)
    order.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    result: Result = imported(order.asked.place)(order)
    if not result.rows:
        raise UserError(
            f"nothing to show for {order.study} in {order.out}", "finished pieces, or a GPU and data to make them with",
            "name their folder by --out, or use --scale quick",
        )  # fmt: skip
    _refuse_loss(path, order.scale, len(result.rows))
    result.commands = result.commands or [order.command()]
    result.remarks = remarks_on(order.study, json.loads(json.dumps(result.record())))
    settings = imported(order.asked.settings)(order) if order.asked.settings else {}
    here = hardware()
    record = {
        "study": order.study, "scale": order.scale, "settings": settings, **result.record(),
        "command": order.command(), "seconds": round(time.monotonic() - start, 1),
        "hardware": here, "hardware_in_words": made_on(result.machines, in_words(here)), **origin(),
    }  # fmt: skip
    for figure, content in result.figures.items():
        write_atomically(order.out / figure, content)
    write_atomically(path, (json.dumps(record, indent=1) + "\n").encode())
    return result


def _refuse_loss(path: Path, scale: str, rows: int | None = None) -> None:
    """Before a study runs and before it writes: a file is not replaced by one with fewer rows, or a full by a quick."""
    if not path.exists():
        return
    cure = "choose another --out, or remove the file to insist"
    try:
        kept = json.loads(path.read_text())
        before, scale_before = len(kept["rows"]), kept.get("scale")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}, which is no result of a study", "a free name", cure) from None
    if scale == "quick" and scale_before in ("full", "paper"):
        raise UserError(
            f"scale quick over the {before} rows of scale {scale_before} in {path}", f"scale {scale_before}", cure
        )
    if rows is not None and rows < before:
        raise UserError(f"{rows} rows over the {before} in {path}", f"at least {before} rows", cure)
