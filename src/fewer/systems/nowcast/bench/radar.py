"""Extrapolation of radar images against pysteps in the same run: 2 km, about 15 minutes, up to two hours ahead.

FEWER_RADAR names a folder of events (each a file, or a folder of files); without it the rain of generated weather
stands in. Without pysteps the comparison is with persistence. FEWER_RADAR_TABLE names a file that keeps every score of
every method by event and lead time, as JSON, and is gone on with after a kill; seconds are measured anew each time.
Everybody sees the same images; each score is of the output made for it: IoU of decisions, FSS (22 km) of rates, CRPS
and reliability of probabilities, where there are any, else of rates.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from fewer.bench.row import Row
from fewer.core.errors import UserError
from fewer.systems.nowcast.bench.kept import Kept, own_source
from fewer.systems.nowcast.bench.rivals import (
    RIVALS,
    CannotForecast,
    Method,
    Rates,
    Said,
    ours,
    persistence,
    pysteps_installed,
)
from fewer.systems.nowcast.bench.skill import Means, Skill, means
from fewer.systems.nowcast.task.baselines.prognosis import fitted_on
from fewer.systems.nowcast.task.files.own.reading import read_images

__all__ = ["NOTES", "TITLE", "Sequence", "chosen_rivals", "compared", "run", "seconds", "sequences"]

_SEEN = 4
_HORIZON_MINUTES = 120
_STARTS = 6  # at most, spread over an event
_TURNS, _PATIENCE = 3, 10.0  # forecasts that are timed, while they take no more seconds together
_QUICK = ("Lucas-Kanade", "S-PROG")
# what an issue asks, and of whom: no worse than either on events that nothing was fitted on
_CHECKED = {"iou_0.2": "IoU at 0.2 mm/h", "fss_0.2": "FSS at 0.2 mm/h", "fss_1": "FSS at 1 mm/h"}
_CLASSICAL = ("Lucas-Kanade", "Lucas-Kanade, decided", "S-PROG")

TITLE = "Extrapolation of radar events against pysteps: 2 km, 15 minutes (or 10) to 2 hours ahead"
NOTES = (
    "Events are those of the folder FEWER_RADAR; rows say on which of them the weights of ours were fitted. The others "
    "are held out: the present version chose nothing on them (one before it chose the motion's window, of two).",
    "Scores are pooled over starts, then averaged over lead times; every method sees the same four images. IoU is of "
    "decisions, FSS (22 km) of rates, CRPS and reliability (mean distance of the diagram's ten bins from the diagonal, "
    "0.2 mm/h) of probabilities; who says no probabilities has the CRPS of a certain forecast.",
    "A row without another name is against the best of the others in that score, a row with a requirement against the "
    "better of Lucas-Kanade, Lucas-Kanade with our decision and S-PROG.",
    "A method that cannot forecast from some start of an event (LINDA, where it finds no features) has no row of it "
    "and no mean over events.",
    "Seconds are processor time on one start of each event, the quickest of three (of one where that takes 10 s), the "
    "median of the events it forecasts.",
    "Few start times of a few days: differences of a few hundredths between events mean nothing.",
)


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
    """Every score of every method that has a forecast from each of the starts."""
    found = {name: Skill(sequence.ahead) for name in methods}
    for start in sequence.starts():
        truth = sequence.rates[start + 1 : start + 1 + len(sequence.ahead)]
        for name in list(found):
            try:
                found[name].add(_forecast(sequence, start, methods[name]), truth)
            except CannotForecast:
                del found[name]
    return found


def _forecast(sequence: Sequence, start: int, method: Method) -> Said:
    return method(sequence.rates[start + 1 - _SEEN : start + 1], sequence.ahead, sequence.step_minutes)


def seconds(events: Iterable[Sequence], methods: Mapping[str, Method]) -> dict[str, float]:
    """Of processor time for a forecast of each event's first start, the quickest of a few; the median of the events."""
    found: dict[str, list[float]] = {name: [] for name in methods}
    for event in events:
        for name, method in methods.items():
            taken: list[float] = []
            with suppress(CannotForecast):
                while len(taken) < _TURNS and sum(taken) < _PATIENCE:
                    begin = time.process_time()
                    _forecast(event, event.starts()[0], method)
                    taken.append(time.process_time() - begin)
            found[name] += [min(taken)] if taken else []
    return {name: float(np.median(each)) for name, each in found.items() if each}


def chosen_rivals(quick: bool) -> dict[str, Method]:
    """Those of pysteps where it is installed, or of them what FEWER_RADAR_RIVALS names with `;` between."""
    if not pysteps_installed():
        return {"persistence": persistence}
    wanted = os.environ.get("FEWER_RADAR_RIVALS", "")
    chosen = [name for name in RIVALS if not wanted or name in wanted.split(";")]
    return {name: RIVALS[name] for name in chosen if not quick or name in _QUICK}


def run(quick: bool = False) -> list[Row]:
    """Rows by event and score, then held-out events by rival and by lead time, then seconds."""
    rivals = chosen_rivals(quick)
    methods: dict[str, Method] = {"ours": ours, **rivals}
    against = f"pysteps {version('pysteps')}" if pysteps_installed() else "persistence (pysteps is not installed)"
    kept, fitted = Kept(os.environ.get("FEWER_RADAR_TABLE", "")), fitted_on()
    events = [one for one in sequences(os.environ.get("FEWER_RADAR", "")) if one.starts()]
    rows: list[Row] = []
    unseen: list[dict[str, Any]] = []
    for event in events:
        every = {
            name: kept.of(event.name, name, event.rates, own_source() if name == "ours" else against,
                          lambda name=name, event=event: _scores(event, name, methods[name]))  # type: ignore[misc]
            for name in methods
        }  # fmt: skip
        scores = {name: one for name, one in every.items() if "minutes" in one}
        known = any(event.name.startswith(name) for name in fitted)
        unseen += [scores] * (not known)
        title = f"{event.name[:24]}, {len(event.starts())} starts, {'fitted' if known else 'held out'}"
        rows += _of_event(title, {name: means(one) for name, one in scores.items()}, against, held_out=not known)
    if unseen:
        rows += [*_by_rival(unseen, against), *_by_lead(unseen, against)]
    taken = seconds(events, methods)
    for name in (name for name in rivals if name in taken):
        needed = 1.0 if name == "S-PROG" else None
        ratio = taken[name] / taken["ours"]
        rows.append(Row(f"seconds a forecast, {name}", taken["ours"], taken[name], "s", ratio, against, needed))
    return rows


def _scores(event: Sequence, name: str, method: Method) -> dict[str, Any]:
    """By lead time; nothing of a method that cannot."""
    return {key: value for skill in compared(event, {name: method}).values() for key, value in skill.scores().items()}


def _everywhere(events: list[dict[str, Any]]) -> list[str]:
    """Methods that forecast every event."""
    return [name for name in events[0] if all(name in event for event in events)]


def _of_event(title: str, found: Means, against: str, *, held_out: bool) -> list[Row]:
    """What is asked beside the classical methods, and every score beside the best of all."""
    classical = {name: one for name, one in found.items() if name in ("ours", *_CLASSICAL)}
    rows = []
    if held_out and len(classical) > 1:
        rows = [_row(title, classical, key, against, 1.0) for key in _CHECKED]
    said = [key for key in found["ours"] if any(key in one for name, one in found.items() if name != "ours")]
    return rows + [_row(title, found, key, against) for key in said if not (rows and key in _CHECKED)]


def _row(title: str, found: Means, key: str, against: str, required: float | None = None) -> Row:
    """Ours beside the best of the others in one score."""
    small = key.startswith(("crps", "reliability"))
    others = {name: one[key] for name, one in found.items() if name != "ours" and key in one}
    best = min(others, key=others.__getitem__) if small else max(others, key=others.__getitem__)
    mine, other = found["ours"][key], others[best]
    ratio = (other / mine if small else mine / other) if min(mine, other) > 0 else float(mine == other)
    kind, _, least = key.partition("_")
    what = f"{kind.upper()} at {least} mm/h".replace("IOU", "IoU") if least else {"crps": "CRPS"}.get(key, key)
    return Row(f"{title}, {what}", mine, other, kind, ratio, f"{against}, {best}", required)


def _by_rival(events: list[dict[str, Any]], against: str) -> list[Row]:
    """Means over events beside each of the others."""
    averaged: dict[str, dict[str, float]] = {}
    for name in _everywhere(events):
        every = [means(event[name]) for event in events]
        averaged[name] = {key: float(np.mean([one[key] for one in every])) for key in (*_CHECKED, "crps")}
    title = f"mean of {len(events)} held-out events"
    return [
        _row(title, {"ours": averaged["ours"], name: averaged[name]}, key, against)
        for name in averaged if name != "ours" for key in averaged["ours"]
    ]  # fmt: skip


def _by_lead(events: list[dict[str, Any]], against: str) -> list[Row]:
    rows = []
    for minutes in (15, 30, 60, 90, 120):
        found = {
            name: {
                key: float(np.mean([np.interp(minutes, event[name]["minutes"], event[name][key]) for event in events]))
                for key in _CHECKED
            }
            for name in _everywhere(events)
        }
        rows += [_row(f"{len(events)} held-out events, {minutes} min ahead", found, key, against) for key in _CHECKED]
    return rows
