"""The matrix at one glance: for each task a field of methods by sparsities, each cell the share of the dense figure."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

from fewer.studies.plot import pyplot

__all__ = ["picture", "shares"]

Row = Sequence[Any]  # as the study's table has it


def shares(rows: Sequence[Row]) -> dict[str, dict[tuple[str, str], float]]:
    """By task, then by method and sparsity: the mean in parts of the dense mean; NaN where no seed was trained."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for task in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == task]
        dense = next((_mean(row) for row in own if row[1] == "dense"), math.nan)
        found[task] = {(row[1], row[2]): _mean(row) / dense for row in own if row[1] != "dense"}
    return found


def picture(rows: Sequence[Row]) -> bytes:
    """A PNG; a cell without a trained network says that it fails."""
    found, plot = shares(rows), pyplot()
    figure, axes = plot.subplots(1, len(found), figsize=(3.4 * len(found), 3.6), squeeze=False, layout="constrained")
    for axis, (task, cells) in zip(axes[0], found.items()):
        methods, across = (list(dict.fromkeys(key[part] for key in cells)) for part in (0, 1))
        values = [[cells.get((method, pruned), math.nan) for pruned in across] for method in methods]
        axis.imshow(values, cmap="RdYlGn", vmin=0.5, vmax=1.0, aspect="auto")
        axis.set_xticks(range(len(across)), across)
        axis.set_yticks(range(len(methods)), methods)
        axis.set_title(f"{task}, % of dense")
        for y, line in enumerate(values):
            for x, value in enumerate(line):
                text = f"{100 * value:.0f}" if math.isfinite(value) else "fails"
                axis.text(x, y, text, ha="center", va="center", fontsize=8)
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=120, metadata={"Software": ""})
    plot.close(figure)
    return memory.getvalue()


def _mean(row: Row) -> float:
    text = str(row[4]).partition(" ± ")[0]
    return math.nan if text == "-" else float(text)
