"""Forecasts of a folder in the competition's layout as CF-NetCDF, one file for each region-year."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.netcdf import Forecast, write_netcdf
from fewer.systems.nowcast.task.files.own.grid import unplaced

if TYPE_CHECKING:
    from fewer.systems.nowcast.task.files.archive import Archive

__all__ = ["write_region_year", "write_region_years"]

_STEP_MINUTES, _KILOMETRES = 15.0, 2.0
_BATCH = 4


def write_region_years(run: str, data: Path, out: Path, *, split: str) -> dict[str, Any]:
    """Probabilities of a run, or of a pack, at every block of a split."""
    import torch

    from fewer.systems.nowcast.learned import predictor_of
    from fewer.systems.nowcast.task.files.archive import Reading, open_archive

    if split not in ("test", "heldout", "validation"):
        raise UserError(f"--split {split}", "test, heldout or validation")
    if out.suffix:
        raise UserError(f"-o {out}", "a folder: each region-year is a file")
    predict, literal = predictor_of(run)
    archive = open_archive(data, split, Reading(literal=literal))
    for number in range(len(archive.pieces)):
        parts = [predict(archive.take(index)) for index in torch.tensor(archive.samples(number)).split(_BATCH)]
        write_region_year(out, archive, number, np.concatenate(parts), split=split)
    return {"forecasts": len(archive), "region-years": len(archive.pieces), "out": str(out)}


def write_region_year(
    folder: Path, archive: Archive, number: int, values: NDArray[np.float32], *, split: str, rates: bool = False
) -> None:
    """(blocks, leads, size, size) of one piece; where a region lies the competition does not say."""
    place, samples = archive.places[archive.pieces[number].place], archive.samples(number)
    times = np.array([archive.time(sample) for sample in samples])
    minutes = [_STEP_MINUTES * (k + 1) for k in range(values.shape[1])]
    name = "rain_rate" if rates else "rain_probability"
    forecast = Forecast({name: values}, times, minutes, unplaced(values.shape[2], values.shape[3], _KILOMETRES))
    title = f"{'Rate' if rates else 'Probability'} of rain, {place}"
    write_netcdf(folder / f"{place.year}.{place.region}.{split}.nc", forecast, title=title)
