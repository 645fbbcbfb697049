"""Generated weather as the competition's files: HDF5 by region and year, and the csv that gives rows their times.

A forecaster can try everything on such a folder before the real data has come.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fewer.core.errors import MissingExtra, UserError
from fewer.core.files.atomic import refusal, write_atomically
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.files.layout import CONTESTS, LAYOUTS, Place
from fewer.systems.nowcast.task.generated.timetable import HEADER, Event, csv_rows, timetable
from fewer.systems.nowcast.task.weather.gaps import Gaps
from fewer.systems.nowcast.task.weather.regimes import checked_regions, draw_scene
from fewer.systems.nowcast.task.weather.weather import Weather, checked_size

__all__ = ["NODATA", "UNDETECT", "write_archive"]

NODATA, UNDETECT = -9999000.0, -8888000.0  # no radar looked; a radar looked and saw nothing
_LAYOUT = LAYOUTS["2022"]
_AT_ONCE = {"cpu": 1, "cuda": 10}  # regions; alone on a CPU, where the bits then depend on nothing else
_Datasets = dict[tuple[str, str, Place], Any]  # by product, split and place


def write_archive(
    root: str | os.PathLike[str],
    *,
    size: int = 252,
    seed: int = 0,
    places: Sequence[Place] = CONTESTS["core"],
    windows: int = 1,
    device: str = "cpu",
) -> list[Path]:
    """Write a folder in the layout of 2022 and name its files.

    Each region-year gets `windows` blocks of validation, test and heldout and as many stretches of training, which
    hold eight windows each; from 2021 on there are inputs of test and heldout only. At 252 pixels that is about 120 MB
    and 12 s of one core per region-year and window.
    """
    checked_size(size)
    checked_regions([place.region for place in places])
    if not 1 <= windows <= 90:
        raise UserError(f"{windows} windows", "1 to 90 of each split, region and year")
    folder, times, written = Path(root), [HEADER], []
    if there := [path.name for path in (folder.iterdir() if folder.is_dir() else ()) if not path.name.startswith(".")]:
        raise UserError(f"{folder} with {there[0]}", "a new or empty folder", "choose another")
    at_once = _AT_ONCE.get(torch.device(device).type, 1)
    try:
        for year in sorted({place.year for place in places}):
            events = timetable(year, windows, seed)
            times += csv_rows(events)
            here = [place for place in places if place.year == year]
            for some in (here[first : first + at_once] for first in range(0, len(here), at_once)):
                with _new_files(folder, some, events, size) as datasets:
                    _fill(datasets, some, events, (seed, size, device))
                written += [_path(folder, key) for key in datasets]
    except OSError as error:
        raise refusal(error, folder) from error
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(times)
    table = folder / _LAYOUT.times[0]
    write_atomically(table, text.getvalue().encode())
    return [*written, table]


def _path(folder: Path, key: tuple[str, str, Place]) -> Path:
    product, split, place = key
    return _LAYOUT.path(folder, product, place, split)


@contextmanager
def _new_files(folder: Path, places: Sequence[Place], events: Sequence[Event], size: int) -> Iterator[_Datasets]:
    """Empty datasets in files of temporary names, which are renamed once all are full."""
    h5py = _h5py()
    rows = _rows(events)
    datasets: _Datasets = {}
    parts: dict[Path, Path] = {}
    try:
        for (product, split), count in rows.items():
            for place in places if count else ():
                path = _path(folder, (product, split, place))
                path.parent.mkdir(parents=True, exist_ok=True)
                part = parts[path] = path.with_name(f".{path.name}.{os.getpid()}.part")
                shape = (count, len(BANDS) if product == "satellite" else 1, size, size)
                key = _LAYOUT.satellite_key if product == "satellite" else _LAYOUT.radar_key
                datasets[product, split, place] = h5py.File(part, "w").create_dataset(
                    key, shape, "float32", chunks=(1, *shape[1:]), compression="gzip", compression_opts=1, shuffle=True
                )
        yield datasets
        for dataset in datasets.values():
            dataset.file.close()
        for path, part in parts.items():
            os.replace(part, path)
    finally:
        for dataset in datasets.values():
            if dataset:
                dataset.file.close()
        for part in parts.values():
            part.unlink(missing_ok=True)


def _rows(events: Sequence[Event]) -> Counter[tuple[str, str]]:
    """Length of each file, by product and split."""
    rows: Counter[tuple[str, str]] = Counter()
    for event in events:
        rows["satellite", event.split] += len(event.images)
        rows["radar", event.split] += len(event.scans)
    return rows


def _fill(datasets: _Datasets, places: Sequence[Place], events: Sequence[Event], how: tuple[int, int, str]) -> None:
    """Let the weather of each event pass, frame by frame, and write what is kept of it."""
    seed, size, device = how
    filled = dict.fromkeys(datasets, 0)
    for number, event in enumerate(events):
        name = f"{event.split} {number}"
        scenes = [draw_scene(place, seed=seed, name=name, start=event.start) for place in places]
        images, scans = event.images, event.scans
        count = images[-1] + 1
        gaps = [Gaps(scene, size=size, frames=count, images=count) for scene in scenes]
        weather = Weather(scenes, size=size, device=device)
        for frame, (satellite, rate) in enumerate(weather.frames(count, seen=images, measured=scans)):
            for index, place in enumerate(places):
                for product, row in (("satellite", satellite), ("radar", rate)):
                    if row is None:
                        continue
                    key = (product, event.split, place)
                    content = (_image if product == "satellite" else _scan)(row[index], gaps[index], frame)
                    datasets[key][filled[key]] = content.cpu().numpy()
                    filled[key] += 1


def _image(satellite: Tensor, gaps: Gaps, frame: int) -> Tensor:
    """(bands, size, size) as an imager counts: steps of 0.001 and 0.05 K; NaN where lines were lost."""
    least = [0.001 if band.reflectance else 0.05 for band in BANDS]
    steps = torch.tensor(least, device=satellite.device)[:, None, None]
    image = torch.round(satellite / steps) * steps
    image[:, gaps.lines(frame)] = float("nan")
    return image


def _scan(rate: Tensor, gaps: Gaps, frame: int) -> Tensor:
    """(1, size, size) in mm/h with OPERA's two codes."""
    known = torch.where(rate > 0, torch.round(rate * 1000) / 1000, UNDETECT)
    return torch.where(gaps.valid(frame).to(rate.device), known, NODATA)[None]


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise MissingExtra("h5py is missing", "the files' library", "pip install 'fewer[nowcast]'") from None
    return h5py
