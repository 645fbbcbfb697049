"""The matrix at one glance: for each task a field of methods by sparsities, each cell the share of the dense figure."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

from fewer.studies.plot import pyplot

__all__ = ["picture", "shares", "uncertain"]

_VAGUE = 0.05  # of the dense mean

Row = Sequence[Any]  # as the study's table has it


def shares(rows: Sequence[Row]) -> dict[str, dict[tuple[str, str], float]]:
    """By task, then by method and sparsity: the mean in parts of the dense mean; NaN where no seed was trained."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for task in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == task]
        dense = next((_mean(row) for row in own if row[1] == "dense"), math.nan)
        found[task] = {(row[1], row[2]): _mean(row) / dense for row in own if row[1] != "dense"}
    return found


def uncertain(rows: Sequence[Row]) -> dict[str, float]:
    """Tasks whose dense mean is known too badly to take shares of it, each with half its interval as a share."""
    found = {}
    for row in rows:
        mean, _, half = str(row[4]).partition(" ± ")
        if row[1] == "dense" and half and float(half) > _VAGUE * float(mean):
            found[str(row[0])] = float(half) / float(mean)
    return found


def picture(rows: Sequence[Row]) -> bytes:
    """A PNG; a cell without a trained network says that it fails, one that lacks seeds has a star."""
    found, vague, plot = shares(rows), uncertain(rows), pyplot()
    seeds = max(row[8] for row in rows)
    partly = {(row[0], row[1], row[2]) for row in rows if 0 < row[8] < seeds}
    figure, axes = plot.subplots(1, len(found), figsize=(3.4 * len(found), 3.6), squeeze=False, layout="constrained")
    for axis, (task, cells) in zip(axes[0], found.items()):
        methods, across = (list(dict.fromkeys(key[part] for key in cells)) for part in (0, 1))
        values = [[cells.get((method, pruned), math.nan) for pruned in across] for method in methods]
        axis.imshow(values, cmap="RdYlGn", vmin=0.5, vmax=1.0, aspect="auto")
        axis.set_xticks(range(len(across)), across)
        axis.set_yticks(range(len(methods)), methods)
        known = f" (± {100 * vague[task]:.0f})" if task in vague else ""
        axis.set_title(f"{task}, % of dense{known}")
        for y, line in enumerate(values):
            for x, value in enumerate(line):
                absent = (methods[y], across[x]) not in cells  # not trained at all
                text = f"{100 * value:.0f}" if math.isfinite(value) else "" if absent else "fails"
                text += "*" if (task, methods[y], across[x]) in partly else ""
                axis.text(x, y, text, ha="center", va="center", fontsize=8)
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=120, metadata={"Software": ""})
    plot.close(figure)
    return memory.getvalue()


def _mean(row: Row) -> float:
    text = str(row[4]).partition(" ± ")[0]
    return math.nan if text == "-" else float(text)
