"""Extrapolation of radar images against pysteps in the same run: 2 km, about 15 minutes, up to two hours ahead.

FEWER_RADAR names a folder of events (each a file, or a folder of files); without it the rain of generated weather
stands in. Without pysteps the comparison is with persistence. FEWER_RADAR_TABLE names a file for every score of every
method by event and lead time, as JSON. Everybody sees the same images; each score is of the output made for it: IoU
of decisions, FSS (22 km) of rates, CRPS and reliability of probabilities, where there are any, else of rates.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from fewer.bench.row import Row
from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically
from fewer.systems.nowcast.bench.rivals import RIVALS, Method, Rates, ours, persistence, pysteps_installed
from fewer.systems.nowcast.bench.skill import Skill
from fewer.systems.nowcast.task.files.own.reading import read_images

__all__ = ["Sequence", "chosen_rivals", "compared", "run", "sequences"]

_SEEN = 4
_HORIZON_MINUTES = 120
_STARTS = 6  # at most, spread over an event
_QUICK = ("Lucas-Kanade", "S-PROG")
_CHECKED = {"iou_0.2": "IoU at 0.2 mm/h", "fss_0.2": "FSS at 0.2 mm/h", "fss_1": "FSS at 1 mm/h"}  # what an issue asks


class Sequence(NamedTuple):
    """An event at 2 km and about 15 minutes."""

    name: str
    rates: Rates  # (time, height, width)
    step_minutes: float

    @property
    def ahead(self) -> list[float]:
        """Lead times in minutes."""
        return [self.step_minutes * (k + 1) for k in range(int(_HORIZON_MINUTES // self.step_minutes))]

    def starts(self) -> list[int]:
        """Last images seen."""
        every = list(range(_SEEN - 1, len(self.rates) - len(self.ahead)))
        return every[:: max(1, -(-len(every) // _STARTS))]


def sequences(folder: str) -> Iterator[Sequence]:
    """Every event of the folder, or of generated weather if there is no folder."""
    if not folder:
        from fewer.systems.nowcast.task.generated.windows import generated

        windows = generated("test", count=4, size=252).take(torch.arange(4))
        for k in range(4):
            yield Sequence(f"generated {k}", np.where(windows.valid[k] > 0, windows.rate[k], np.nan), 15.0)
        return
    paths = sorted(path for path in Path(folder).glob("*") if path.is_dir() or path.suffix == ".npz")
    if not paths:
        raise UserError(f"{folder} without radar events", "npz files or folders", "set FEWER_RADAR to their folder")
    for path in paths:
        event = read_images(path)
        every = max(int(15 // event.step_minutes), 1)
        factor = max(round(2 / event.grid.kilometres), 1)
        coarse = event.coarser(factor)
        yield Sequence(path.stem, coarse.rates[::every], event.step_minutes * every)


def compared(sequence: Sequence, methods: Mapping[str, Method]) -> dict[str, Skill]:
    """Every score of every method, in turns over the starts."""
    found = {name: Skill(sequence.ahead) for name in methods}
    for start in sequence.starts():
        truth = sequence.rates[start + 1 : start + 1 + len(sequence.ahead)]
        for name, method in methods.items():
            begin = time.process_time()
            said = method(sequence.rates[start + 1 - _SEEN : start + 1], sequence.ahead, sequence.step_minutes)
            found[name].add(said, truth, time.process_time() - begin)
    return found


def chosen_rivals(quick: bool) -> dict[str, Method]:
    """Those of pysteps where it is installed, or of them what FEWER_RADAR_RIVALS names with `;` between."""
    if not pysteps_installed():
        return {"persistence": persistence}
    wanted = os.environ.get("FEWER_RADAR_RIVALS", "")
    chosen = [name for name in RIVALS if not wanted or name in wanted.split(";")]
    return {name: RIVALS[name] for name in chosen if not quick or name in _QUICK}


def run(quick: bool = False) -> list[Row]:
    """Rows by event and score, then all events by lead time, then seconds; each against the best rival there."""
    rivals = chosen_rivals(quick)
    against = f"pysteps {version('pysteps')}" if pysteps_installed() else "persistence (pysteps is not installed)"
    rows: list[Row] = []
    table: dict[str, dict[str, Any]] = {}
    for sequence in sequences(os.environ.get("FEWER_RADAR", "")):
        if not sequence.starts():
            continue
        found = compared(sequence, {"ours": ours, **rivals})
        table[sequence.name] = {name: skill.scores() for name, skill in found.items()}
        title = f"{sequence.name[:24]}, {len(sequence.starts())} starts"
        means = {name: skill.means() for name, skill in found.items()}
        rows += [_row(title, means, key, against) for key in means["ours"] if key != "seconds"]
    rows += _by_lead(table, against)
    for name in rivals:
        mine, other = (float(np.mean([event[who]["seconds"] for event in table.values()])) for who in ("ours", name))
        rows.append(Row(f"seconds a forecast, {name}", mine, other, "s", other / mine, against))
    if target := os.environ.get("FEWER_RADAR_TABLE", ""):
        write_atomically(target, json.dumps({"against": against, "events": table}, indent=1).encode())
    return rows


def _row(title: str, means: dict[str, dict[str, float]], key: str, against: str) -> Row:
    """Ours beside the best of the others in one score."""
    small = key.startswith(("crps", "reliability"))
    others = {name: one[key] for name, one in means.items() if name != "ours" and key in one}
    best = min(others, key=others.__getitem__) if small else max(others, key=others.__getitem__)
    mine, other = means["ours"][key], others[best]
    ratio = (other / mine if small else mine / other) if min(mine, other) > 0 else float(mine == other)
    what = _CHECKED.get(key, key.replace("_", " at ") + ("" if small else " mm/h"))
    return Row(
        f"{title}, {what}",
        mine,
        other,
        key.split("_")[0],
        ratio,
        f"{against}, {best}",
        1.0 if key in _CHECKED else None,
    )


def _by_lead(table: dict[str, dict[str, Any]], against: str) -> list[Row]:
    rows = []
    for minutes in (15, 30, 60, 90, 120):
        means = {
            name: {
                "iou_0.2": float(
                    np.mean([np.interp(minutes, e[name]["minutes"], e[name]["iou_0.2"]) for e in table.values()])
                )
            }
            for name in next(iter(table.values()))
        }
        rows.append(_row(f"all events, {minutes} min ahead", means, "iou_0.2", against))
    return rows
