"""A small folder in the competition's layout, written with h5py and csv alone, from its description."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

NODATA, UNDETECT = -9999000.0, -8888000.0
HEADER = ["time", "date_str", "date", "RATE", "ACRR", "DBZH", "REFL-BT", "all_vars", "split", "split_type"]
# mean and deviation of each band as the competition states them
BANDS = (
    (0.066, 0.099), (273.2, 16.0), (268.4, 17.5), (246.1, 10.8), (270.2, 18.5), (268.8, 18.4), (250.6, 11.7),
    (0.067, 0.11), (0.087, 0.133), (232.2, 5.53), (248.0, 9.5),
)  # fmt: skip


@dataclass
class Calendar:
    """Rows of the csv, in time's order: split, split_type and whether everything is available."""

    start: datetime = datetime(2019, 2, 15)
    rows: list[tuple[str, str, bool]] = field(default_factory=list)

    def training(self, count: int, available: bool = True) -> Calendar:
        self.rows += [("training", "-", available)] * count
        return self

    def validation(self) -> Calendar:
        self.rows += [("validation", "validation_in", True)] * 4 + [("validation", "validation_target", True)] * 32
        return self

    def block(self, split: str) -> Calendar:
        for part, count in (("in", 4), ("target", 32), ("buffer", 32)):
            self.rows += [(split, f"{split}_{part}", True)] * count
        return self

    def count(self, *kinds: str) -> int:
        return sum(kind in kinds or split in kinds for split, kind, available in self.rows if available)

    def lines(self, padded: bool = True) -> list[list[str]]:
        lines = []
        for number, (split, kind, available) in enumerate(self.rows):
            when = self.start + timedelta(minutes=15 * number)
            time = f"{when:%H%M%S}" if padded else str(int(f"{when:%H%M%S}"))
            flag = str(int(available))
            lines.append(
                [
                    time,
                    f"{when:%Y%m%d}",
                    f"{when:%Y-%m-%d}",
                    "1",
                    "1",
                    flag,
                    "1",
                    flag,
                    split if available else "-",
                    kind,
                ]
            )
        return lines


def write_csv(path: Path, lines: list[list[str]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(lines)


def images(rows: int, size: int, seed: int) -> NDArray[np.float32]:
    """Plausible raw bands (rows, 11, size, size)."""
    random = np.random.default_rng(seed)
    noise = random.standard_normal((rows, len(BANDS), size, size)).astype(np.float32)
    mean, deviation = (np.array(column, dtype=np.float32)[:, None, None] for column in zip(*BANDS))
    return np.maximum(mean + deviation * noise, np.float32(0))


def rates(rows: int, size: int, seed: int) -> NDArray[np.float32]:
    """Raw rates (rows, 1, size, size): a tenth wet, a strip that no radar sees, the rest dry."""
    random = np.random.default_rng(seed + 1000)
    rain = np.exp(random.standard_normal((rows, 1, size, size)) - 0.3).astype(np.float32)
    rain = np.where(random.uniform(size=rain.shape) < 0.1, rain, np.float32(UNDETECT))
    rain[:, :, :, 0] = NODATA
    return rain


def write_h5(path: Path, key: str, array: NDArray[np.generic]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file.create_dataset(key, data=array)


def calendar(start: datetime = datetime(2019, 2, 15), blocks: int = 2) -> Calendar:
    """80 training rows of which the 50th is unavailable, blocks of each kind, 20 training rows, 40 training rows."""
    days = Calendar(start).training(49).training(1, available=False).training(30)
    for _ in range(blocks):
        days.validation().block("test").block("heldout")
    return days.training(20).validation().training(40)


def write_competition(
    root: Path, regions: tuple[str, ...] = ("boxi_0015", "roxi_0004"), years: tuple[int, ...] = (2019,), size: int = 12
) -> None:
    """Everything a stage-2 participant downloads, small."""
    lines = []
    for year in years:
        days = calendar(datetime(year, 2, 15))
        lines += days.lines()
        for number, region in enumerate(regions):
            seed = 10 * year + number
            for word, kind in (
                ("train", "training"), ("val", "validation"), ("test", "test_in"), ("heldout", "heldout_in"),
            ):  # fmt: skip
                count = days.count(kind)
                name = root / str(year) / "HRIT" / f"{region}.{word}.reflbt0.ns.h5"
                write_h5(name, "REFL-BT", images(count, size, seed))
                if word in ("train", "val"):
                    name = root / str(year) / "OPERA" / f"{region}.{word}.rates.crop.h5"
                    write_h5(name, "rates.crop", rates(count, size, seed))
    write_csv(root / "timestamps_and_splits_stage2.csv", lines)
