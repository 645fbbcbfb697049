"""Forecasts from a user's own files, by extrapolation or by a trained model: one result, whatever made it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.nowcast.result import Result
from fewer.systems.nowcast.task.baselines.extrapolation import outlook, recent
from fewer.systems.nowcast.task.baselines.prognosis import FITTED_MINUTES
from fewer.systems.nowcast.task.files.netcdf import Forecast, probability_name
from fewer.systems.nowcast.task.files.own.images import Images
from fewer.systems.nowcast.task.files.own.reading import read_images

if TYPE_CHECKING:
    from fewer.systems.nowcast.maps import Chart

__all__ = ["as_chart", "as_netcdf", "forecast_files", "forecast_images"]

_KEPT = (0.2, 1.0, 5.0)  # mm/h whose probabilities are written
_FURTHEST_APART = 60.0  # minutes between images from which motion can still be read
_MOST_PIXELS = 4_500_000
_WELL_SEEN = 0.95
_SHORTEST = 5.0  # minutes between forecasts if nobody says


def forecast_files(
    files: str | Path | Iterable[str | Path], *, model: str = "", hours: float = 2.0, step_minutes: float = 0.0,
    variables: Sequence[str] = (), pixel_km: float = 0.0,
) -> Result:  # fmt: skip
    """As `fewer forecast` does: whatever layout the files have; `model` is a pack or a run, empty: extrapolation."""
    images = read_images(files, variables=variables)
    images, remarks = _sized(images, pixel_km)
    result = forecast_images(images, model=model, hours=hours, step_minutes=step_minutes)
    return replace(result, remarks=remarks + result.remarks)


def forecast_images(images: Images, *, model: str = "", hours: float = 2.0, step_minutes: float = 0.0) -> Result:
    """Of images that are already in memory."""
    remarks = _remarks(images)
    if model:
        from fewer.systems.nowcast.learned import forecast_by

        return forecast_by(model, images, hours=hours, remarks=remarks)
    if not images.is_rain:
        named = ", ".join(one.name for one in images.channels)
        raise UserError(f"{named} without a model", "rain rates, or --pack with a model of these bands", "--variable")
    minutes = images.minutes
    *_, before, last = recent(minutes.tolist())
    between = float(minutes[last] - minutes[before])
    if between > _FURTHEST_APART:
        raise UserError(f"the last two images {between:g} minutes apart", f"at most {_FURTHEST_APART:g}, to see motion")
    step = step_minutes or max(images.step_minutes, _SHORTEST)
    ahead = [step * (k + 1) for k in range(max(int(60 * hours / step + 1e-9), 1))]
    if ahead[-1] > FITTED_MINUTES[1]:
        remarks.append(
            f"probabilities beyond {FITTED_MINUTES[1]:g} minutes are those of {FITTED_MINUTES[1]:g} minutes, moved on"
        )
    found = outlook(images.rates, minutes.tolist(), ahead, pixel_km=images.grid.kilometres, keep=_KEPT)
    probability = {least: found.at_least(least) for least in _KEPT}
    return Result("extrapolation", images, ahead, probability, found.rate, found.rain, remarks)


def _sized(images: Images, pixel_km: float) -> tuple[Images, list[str]]:
    """On the pixels asked for; a map too large to be forecast as it is on coarser ones."""
    side = images.grid.kilometres
    factor = 1
    if pixel_km:
        factor = max(round(pixel_km / side), 1)
        if not np.isclose(factor * side, pixel_km, rtol=0.02):
            raise UserError(f"--pixel-km {pixel_km:g} of pixels of {side:.3g} km", "a multiple of them")
        return images.coarser(factor), []
    while images.grid.shape[0] * images.grid.shape[1] / factor**2 > _MOST_PIXELS:
        factor += 1
    if factor == 1:
        return images, []
    rows, columns = images.grid.shape
    return images.coarser(factor), [
        f"{rows} x {columns} pixels are forecast {factor} x {factor} at a time, as their means"
    ]


def _remarks(images: Images) -> list[str]:
    """What is not as one would wish."""
    _, remarks = images.on_time()
    last = float(np.isfinite(images.values[-1]).any(0).mean())
    if last == 0:
        raise UserError(f"a last image, {images.times[-1]}, in which nothing was measured", "one with measurements")
    if last < _WELL_SEEN:
        remarks.append(f"{100 * last:.0f} % of the map was seen at the last time; the rest stays unknown")
    if not images.timed:
        remarks.append("the file says no date: times count from its first image")
    if not images.grid.placed:
        remarks.append("the files say no place: x and y count from the map's centre")
    return remarks


def as_netcdf(result: Result) -> Forecast:
    """Every field, ready to be written."""
    fields = {probability_name(least): values[None] for least, values in result.probability.items()}
    if result.rate is not None:
        fields["rain_rate"] = result.rate[None]
    first = next(iter(result.probability.values()))
    fields["rain"] = np.where(np.isfinite(first), result.rain, np.nan).astype(np.float32)[None]
    notes = {"method": result.method, "remarks": "; ".join(result.remarks)}
    return Forecast(fields, result.images.times[-1:], result.minutes, result.images.grid, notes)


def as_chart(result: Result, shown: str = "probability") -> Chart:
    """Ready to be drawn."""
    from fewer.systems.nowcast.maps import Chart

    fields = result.rate if shown == "rate" else next(iter(result.probability.values()))
    if fields is None:
        raise UserError(f"rates by {result.method}", "a model that forecasts rates", "--show probability")
    titles = [f"+{_clock(minutes)}" for minutes in result.minutes]
    when = str(result.reference).replace("T", " ")[:16] + " UTC" if result.images.timed else "last image"
    observed = result.images.values[-1, 0] if result.images.is_rain else None
    return Chart(
        result.images.grid, fields, shown, titles, observed, f"seen {when}", f"Rain by {result.method}, from {when}"
    )


def _clock(minutes: float) -> str:
    return f"{int(minutes // 60)} h {minutes % 60:02.0f}" if minutes >= 60 else f"{minutes:g} min"
