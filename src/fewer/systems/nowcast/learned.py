"""Trained models, as packs or runs, on a user's own files: the bands they know, in the order and scale they know.

A map larger than the model's window is forecast window by window; where windows overlap, each counts most in its
middle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.systems.nowcast.result import Result
from fewer.systems.nowcast.task.files.own.grid import Grid
from fewer.systems.nowcast.task.files.own.images import Images
from fewer.systems.nowcast.task.files.own.standard import standardised
from fewer.systems.nowcast.task.windows import COMPETITION, Geometry

__all__ = ["Model", "forecast_by", "opened_model", "predictor_of", "tiled"]

Array = NDArray[np.float32]
_NEAR = 0.2  # of a step: how far from its time an image may be


@dataclass(frozen=True)
class Model:
    """What there is to know of a trained model."""

    predict: Callable[[Array, Array], Array]  # (batch, seen, bands, side, side), missing -> (batch, leads, side, side)
    geometry: Geometry
    size: int
    positive_weight: float = 1.0  # what a wet pixel counted in the loss; 1: probabilities are as they are
    literal: bool = False


def opened_model(path: str) -> Model:
    """A run's folder, a pack, or the name of a pack that comes with the package."""
    return _of_run(path) if Path(path).is_dir() else _of_pack(path)


def predictor_of(path: str) -> tuple[Callable[[Any], Array], bool]:
    """For windows of the competition's files; and whether missing pixels are 0 K."""
    model = opened_model(path)
    if model.geometry != COMPETITION:
        raise UserError(f"{path} trained on files of another kind", "a model of the competition's files")
    return lambda batch: model.predict(batch.satellite.numpy(), batch.missing.numpy()), model.literal


def _of_run(path: str) -> Model:
    import torch

    from fewer.core.engines.evaluate import predictor
    from fewer.run.load import load
    from fewer.systems.nowcast.task.windows import Windows

    run = load(path)
    task: Any = run.task
    if run.job.task != "nowcast":
        raise UserError(f"{path} of {run.job.task}", "a run of nowcast")
    member = predictor(task, run.modules, run.job.seeds[0])

    def predict(satellite: Array, missing: Array) -> Array:
        nothing = torch.zeros(len(satellite), task.geometry.leads, 1, 1)
        batch = Windows(
            torch.from_numpy(satellite), torch.from_numpy(missing), nothing, nothing, torch.zeros(len(satellite)).long()
        )
        found: Array = member(batch).float().cpu().numpy()
        return found

    weight = float(task.positive_weight) if task.settings.loss in ("bce", "bce_paper") else 1.0
    return Model(predict, task.geometry, task.size, weight, bool(task.settings.literal))


def _of_pack(path: str) -> Model:
    from fewer.run.api import open_pack

    pack = open_pack(path)
    inputs = {item.name: item for item in pack.networks["net"].program.inputs} if "net" in pack.networks else {}
    if pack.settings.get("task") != "nowcast" or "satellite" not in inputs:
        raise UserError(f"{path} of {pack.settings.get('task', 'no task')}", "a pack of nowcast")
    about = dict(pack.settings.get("about") or {})
    geometry = _geometry(about, path) if about else COMPETITION

    def predict(satellite: Array, missing: Array) -> Array:
        given = {"satellite": satellite, "missing": missing}
        found: Array = np.asarray(pack.predict(**{name: given[name] for name in inputs}), np.float32)
        return found

    return Model(predict, geometry, int(inputs["satellite"].shape[-1]), float(about.get("positive_weight", 1.0)))


def _geometry(about: dict[str, Any], path: str) -> Geometry:
    try:
        return Geometry(
            int(about["seen"]), int(about["leads"]), int(about["factor"]), float(about["step_minutes"]),
            tuple(map(str, about["bands"])),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path} that does not say what it sees", "a pack that `fewer pack` wrote") from None


def forecast_by(path: str, images: Images, *, hours: float, remarks: list[str]) -> Result:
    """Probabilities of at least the rate that the model was trained for, 0.2 mm/h if nobody chose another."""
    model = opened_model(path)
    geometry = model.geometry
    satellite, missing, lost = _seen(images, geometry, path)
    if lost:
        remarks = [*remarks, f"{lost} of the {geometry.seen} images that the model sees are missing"]
    maps, grid = tiled(model, images.grid, satellite, missing)
    ahead = [geometry.step_minutes * (k + 1) for k in range(geometry.leads)]
    count = max(sum(lead <= 60 * hours + 1e-6 for lead in ahead), 1)
    if ahead[-1] < 60 * hours:
        remarks = [*remarks, f"the model forecasts {ahead[-1]:g} minutes, not {60 * hours:g}"]
    maps = maps[:count]
    maps[:, _dark(missing, geometry.factor, maps.shape[1:])] = np.nan  # nobody will know
    rain = np.nan_to_num(maps) >= 0.5
    weight = model.positive_weight
    probability = maps / (maps + weight * (1 - maps))  # what a loss with a weight learns is undone
    on_grid = Images(images.values[:, :, :1, :1], images.times, images.channels, grid, images.timed)
    if geometry.factor == 1:
        on_grid = images
    return Result(Path(path).name, on_grid, ahead[:count], {0.2: probability.astype(np.float32)}, None, rain, remarks)


def _dark(missing: Array, factor: int, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """(y, x) of the maps: where none of the images that the model sees shows anything."""
    dark: NDArray[np.bool_] = np.logical_and.reduce(missing, axis=0)
    margins = [(length * factor - there) // (2 * factor) for length, there in zip(dark.shape, shape)]
    rows, columns = (slice(margin, length - margin) for margin, length in zip(margins, dark.shape))
    found: NDArray[np.bool_] = dark[rows, columns].repeat(factor, 0).repeat(factor, 1)
    return found


def _seen(images: Images, geometry: Geometry, path: str) -> tuple[Array, Array, int]:
    """(seen, bands, y, x) standardised, (seen, y, x) missing, and how many images are."""
    names = [channel.name for channel in images.channels]
    if absent := [name for name in geometry.bands if name not in names]:
        raise UserError(f"files with {', '.join(names)}", f"{', '.join(absent)} too, which {path} sees")
    order = [names.index(name) for name in geometry.bands]
    shape = images.grid.shape
    satellite = np.zeros((geometry.seen, len(order), *shape), np.float32)
    missing = np.ones((geometry.seen, *shape), np.float32)
    back = images.minutes[-1] - images.minutes
    lost = 0
    for k in range(geometry.seen):
        wanted = geometry.step_minutes * (geometry.seen - 1 - k)
        nearest = int(np.abs(back - wanted).argmin())
        if abs(back[nearest] - wanted) > _NEAR * geometry.step_minutes:
            lost += 1
            continue
        channels = tuple(images.channels[one] for one in order)
        satellite[k], missing[k] = standardised(images.values[nearest][order], channels)
    return satellite, missing, lost


def tiled(model: Model, grid: Grid, satellite: Array, missing: Array) -> tuple[Array, Grid]:
    """(leads, y, x) over every place whose surroundings are seen, and the grid of that."""
    size, factor = model.size, model.geometry.factor
    inner = size // factor
    margin = (size - inner) // 2
    beyond = [max(size - length, 0) for length in grid.shape]  # a map smaller than the window is filled up
    satellite = np.pad(satellite, ((0, 0), (0, 0), (0, beyond[0]), (0, beyond[1])))
    missing = np.pad(missing, ((0, 0), (0, beyond[0]), (0, beyond[1])), constant_values=1)
    height, width = satellite.shape[2:]
    fine = ((height - 2 * margin) * factor, (width - 2 * margin) * factor)
    total, weights = np.zeros((model.geometry.leads, *fine), np.float32), np.zeros(fine, np.float32)
    ramp = np.minimum(np.arange(1, size + 1), np.arange(size, 0, -1)).astype(np.float32)
    window = ramp[:, None] * ramp
    for row in _places(height - size, inner):
        for column in _places(width - size, inner):
            part = (slice(row, row + size), slice(column, column + size))
            said = model.predict(satellite[None, :, :, part[0], part[1]], missing[None, :, part[0], part[1]])[0]
            there = slice(row * factor, row * factor + size), slice(column * factor, column * factor + size)
            total[:, there[0], there[1]] += said * window
            weights[there] += window
    rows, columns = (
        (length - 2 * margin) * factor if not more else length * factor for length, more in zip(grid.shape, beyond)
    )
    found = (total / np.maximum(weights, np.float32(1e-6)))[:, :rows, :columns].astype(np.float32)
    return found, _finer(grid, margin if not any(beyond) else 0, factor, (rows, columns))


def _places(last: int, inner: int) -> Iterator[int]:
    """Windows half an inner square apart, the last at the edge."""
    step = max(inner // 2, 1)
    yield from range(0, last, step)
    yield last


def _finer(grid: Grid, margin: int, factor: int, shape: tuple[int, int]) -> Grid:
    """`factor` pixels along each, without the margin."""
    (across, down), rows, columns = grid.pixel, shape[0], shape[1]
    left = grid.x[margin] - across / 2 + (np.arange(columns) + 0.5) * across / factor
    top = grid.y[margin] + down / 2 - (np.arange(rows) + 0.5) * down / factor
    return Grid(left, top, grid.projection)
