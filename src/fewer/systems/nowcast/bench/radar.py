"""Radar-only extrapolation against pysteps in the same run: IoU at 0.2 mm/h, 2 km, up to two hours ahead.

FEWER_RADAR names a folder of radar events (.npz); without it the rain of generated weather stands in. Without pysteps
the comparison is with persistence. Both see the same images; what enters from outside the map counts as dry for both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fewer.bench.row import Row
from fewer.core.errors import UserError
from fewer.systems.nowcast.task.baselines.extrapolation import (
    decision,
    displacements,
    extrapolate,
    pysteps_extrapolate,
    pysteps_installed,
)
from fewer.systems.nowcast.task.baselines.motion import carried, motion
from fewer.systems.nowcast.task.files.radar import read
from fewer.systems.nowcast.task.scores.scores import Scores

__all__ = ["Sequence", "compared", "run", "sequences"]

Rates = NDArray[np.floating[Any]]
Forecast = Callable[[Rates, int, float], NDArray[np.bool_]]

_SEEN = 4
_HORIZON_MINUTES = 120
_STARTS = 6  # at most, spread over an event


class Sequence(NamedTuple):
    """An event at 2 km and about 15 minutes."""

    name: str
    rates: Rates  # (time, height, width)
    step_minutes: float

    @property
    def leads(self) -> int:
        return int(_HORIZON_MINUTES // self.step_minutes)

    def starts(self) -> list[int]:
        """Last images seen."""
        every = list(range(_SEEN - 1, len(self.rates) - self.leads))
        return every[:: max(1, -(-len(every) // _STARTS))]


def sequences(folder: str) -> Iterator[Sequence]:
    """Every event of the folder, or of generated weather if there is no folder."""
    if not folder:
        from fewer.systems.nowcast.task.generated.windows import generated

        windows = generated("test", count=4, size=252).take(torch.arange(4))
        for k in range(4):
            yield Sequence(f"generated {k}", np.where(windows.valid[k] > 0, windows.rate[k], np.nan), 15.0)
        return
    paths = sorted(Path(folder).glob("*.npz"))
    if not paths:
        raise UserError(f"{folder} without .npz files", "radar events", "set FEWER_RADAR to their folder")
    for path in paths:
        event = read(path)
        step = float(event.minutes[1] - event.minutes[0])
        every = max(int(15 // step), 1)
        factor = max(round(2 / event.kilometres), 1)
        yield Sequence(path.stem, _coarser(event.rates[::every], factor), step * every)


def _coarser(rates: Rates, factor: int) -> Rates:
    """Means over blocks of which at least half is known."""
    height, width = (length - length % factor for length in rates.shape[1:])
    blocks = rates[:, :height, :width].reshape(len(rates), height // factor, factor, width // factor, factor)
    known = np.isfinite(blocks).sum((2, 4))
    sums = np.nansum(blocks, (2, 4))
    return np.where(2 * known >= factor**2, sums / np.maximum(known, 1), np.nan)


def ours(rates: Rates, leads: int, step_minutes: float) -> NDArray[np.bool_]:
    """Probabilities, each lead time decided by its own expected IoU."""
    found = extrapolate(rates, leads, step_minutes=step_minutes)
    return np.stack([field >= decision(field) for field in found])


def sharp(rates: Rates, leads: int, step_minutes: float) -> NDArray[np.bool_]:
    """The last image carried on along our motion, and nothing else."""
    last = np.nan_to_num(rates[-1]).astype(np.float32)
    return np.stack([carried(last, travelled, 0.0) >= 0.2 for travelled in displacements(motion(rates[-2:]), leads)])


def theirs(seen: int) -> Forecast:
    """Lucas-Kanade motion from that many images."""
    return lambda rates, leads, step_minutes: pysteps_extrapolate(rates[-seen:], leads) >= 0.2


def persistence(rates: Rates, leads: int, step_minutes: float) -> NDArray[np.bool_]:
    """As it is now."""
    return np.repeat(np.nan_to_num(rates[-1:]) >= 0.2, leads, axis=0)


def compared(sequence: Sequence, forecasts: dict[str, Forecast]) -> dict[str, tuple[list[float], float]]:
    """IoU by lead time and processor seconds a forecast, in turns over the starts."""
    scores = {name: Scores() for name in forecasts}
    seconds = dict.fromkeys(forecasts, 0.0)
    for start in sequence.starts():
        truth = torch.from_numpy(sequence.rates[start + 1 : start + 1 + sequence.leads].astype(np.float32))[None]
        for name, forecast in forecasts.items():
            begin = time.process_time()
            said = forecast(sequence.rates[start + 1 - _SEEN : start + 1], sequence.leads, sequence.step_minutes)
            seconds[name] += time.process_time() - begin
            scores[name].add(
                torch.from_numpy(said)[None].float(), truth.nan_to_num(), truth.isfinite(), torch.zeros(1).long()
            )
    return {name: (scores[name].by_lead()["iou"], seconds[name] / len(sequence.starts())) for name in forecasts}


def run(quick: bool = False) -> list[Row]:
    """A row an event and a row a lead time; then what our motion alone is worth, and what it costs."""
    installed = pysteps_installed()
    against = f"pysteps {version('pysteps')}" if installed else "persistence (pysteps is not installed)"
    rivals: dict[str, Forecast] = {"persistence": persistence}
    if installed:
        rivals = {f"{seen} images": theirs(seen) for seen in ((3,) if quick else (2, 3, 4))}
    rows, alone, lines, cost = [], [], [], []
    for sequence in sequences(os.environ.get("FEWER_RADAR", "")):
        found = compared(sequence, {"ours": ours, "sharp": sharp, **rivals})
        best = max(rivals, key=lambda name: float(np.mean(found[name][0])))
        mine, other = (float(np.mean(found[name][0])) for name in ("ours", best))
        title = f"{sequence.name[:24]}, {len(sequence.starts())} starts"
        rows.append(Row(title, mine, other, "IoU", mine / other, f"{against}, {best}", 1.0))
        plain = float(np.mean(found["sharp"][0]))
        alone.append(Row(f"{title}, motion alone", plain, other, "IoU", plain / other, f"{against}, {best}"))
        lines.append([np.interp(_MINUTES, _leads(sequence), found[name][0]) for name in ("ours", best)])
        cost.append((found["ours"][1], found[best][1]))
    for k, minutes in enumerate(_MINUTES):
        mine, other = (float(np.mean([line[side][k] for line in lines])) for side in (0, 1))
        rows.append(Row(f"all events, {minutes} min ahead", mine, other, "IoU", mine / other, against, 1.0))
    mine, other = (float(np.mean([pair[side] for pair in cost])) for side in (0, 1))
    return [*rows, *alone, Row("seconds a forecast", mine, other, "s", other / mine, against)]


_MINUTES = (15, 30, 60, 90, 120)


def _leads(sequence: Sequence) -> NDArray[np.floating[Any]]:
    return np.arange(1, sequence.leads + 1) * sequence.step_minutes
