"""A look at a folder before hours are spent on it: what is there, how wet, how complete, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.files.archive import source_of, splits_of
from fewer.systems.nowcast.task.files.layout import (
    CONTESTS,
    CORE,
    SPLITS,
    TRANSFER,
    Layout,
    Place,
    found_places,
    radar_places,
)
from fewer.systems.nowcast.task.files.region_year import Source

__all__ = ["WET", "Found", "Report", "check"]

# share of pixels with at least 0.2 mm/h among those a radar saw, as published: training, validation
WET: dict[Place, tuple[float, float]] = {
    Place(region, year): pair
    for region, pairs in {
        "boxi_0015": ((0.0732, 0.0596), (0.0807, 0.0888)),
        "boxi_0034": ((0.0602, 0.0688), (0.0873, 0.0892)),
        "boxi_0076": ((0.0544, 0.0611), (0.0414, 0.0671)),
        "roxi_0004": ((0.1050, 0.1354), (0.1410, 0.1531)),
        "roxi_0005": ((0.0943, 0.0853), (0.1114, 0.1132)),
        "roxi_0006": ((0.1074, 0.1244), (0.1069, 0.0704)),
        "roxi_0007": ((0.0227, 0.0160), (0.0253, 0.0479)),
    }.items()
    for year, pair in zip((2019, 2020), pairs)
}
_RAIN = 0.2  # mm/h


@dataclass(frozen=True)
class Found:
    """One region-year of one split, as it is."""

    place: Place
    split: str
    rows: int
    windows: int
    gaps: int
    size: int
    looked_at: int  # frames, spread evenly
    missing: float  # share of satellite pixels with a missing band
    empty_images: int  # of those looked at: nothing but missing pixels
    unseen: float | None  # share of radar pixels that no radar saw; None without targets
    wet: float | None
    dry_frames: int
    unseen_frames: int
    published_wet: float | None

    def line(self) -> str:
        """For people."""
        text = f"{self.place} {self.split}: {self.rows} rows, {self.windows} windows, {self.gaps} gaps, {self.size} px"
        text += f"; of {self.looked_at} frames: missing {self.missing:.2%}, {self.empty_images} images empty"
        if self.unseen is None:
            return text + ", no targets"
        text += f", unseen {self.unseen:.2%}, {self.unseen_frames} wholly; {self.dry_frames} dry"
        wet = "nothing seen" if self.wet is None else f"wet {self.wet:.4f}"
        return f"{text}, {wet}" + (f" (published {self.published_wet:.4f})" if self.published_wet is not None else "")


@dataclass
class Report:
    """Everything found; usable if at least one split of one region-year is."""

    found: list[Found] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    contests: list[str] = field(default_factory=list)


def check(root: Path, layout: Layout, *, frames: int = 48) -> Report:
    """Look at every file's shape and at `frames` frames of each (0: all of them)."""
    report, places = Report(), found_places(root, layout)
    blind = sorted(radar_places(root, layout) - set(places))
    report.problems += [f"{place}: radar files without a satellite's" for place in blind]
    for place in places:
        for split in SPLITS:
            try:
                source = source_of(root, layout, place, split)
                if source is not None:
                    report.found.append(_looked_at(root, layout, (place, split), source, frames))
                elif split in _expected(place):
                    report.problems.append(f"{place}: no {split} files")
            except UserError as error:
                report.problems.append(f"{place} {split}: {error}")
    report.problems += _remarks(report.found)
    for name, wanted in CONTESTS.items():
        absent = [place for place in wanted if place not in places]
        if len(absent) < len(wanted):
            text = f"; missing {', '.join(map(str, absent))}" if absent else ""
            report.contests.append(f"{name}: {len(wanted) - len(absent)} of {len(wanted)} region-years{text}")
    return report


def _expected(place: Place) -> tuple[str, ...]:
    """The splits that the competition gave out for a region-year; none are expected of a stranger."""
    if place.region in CORE and place.year in (2019, 2020):
        return SPLITS
    known = place.region in CORE + TRANSFER and place.year in (2019, 2020, 2021)
    return ("test", "heldout") if known else ()


def _looked_at(root: Path, layout: Layout, key: tuple[Place, str], source: Source, frames: int) -> Found:
    place, split = key
    length, size = source.shape()
    table = splits_of(root, layout, place.year)
    rows = table.rows(split, place.year)
    if len(rows.minutes) != length:
        raise UserError(f"{length} rows in {source.satellite.name}", f"{len(rows.minutes)}, as {table.path.name} has")
    chosen = np.unique(np.linspace(0, length - 1, min(frames or length, length)).astype(int)).tolist() if length else []
    missing = [share for row in chosen for share in [float(source.image(row)[1].mean())]]
    seen = wet = dry = unseen = 0
    for valid_pixels, wet_pixels in _rain_counts(source, chosen, size):
        seen, wet = seen + valid_pixels, wet + wet_pixels
        unseen += valid_pixels == 0
        dry += wet_pixels == 0 and valid_pixels > 0
    targets = source.radar is not None
    published = WET.get(place, (None, None))[("train", "validation").index(split)] if targets and place in WET else None
    return Found(
        place, split, length, len(rows.starts), rows.gaps, size, len(chosen),
        missing=float(np.mean(missing)) if missing else 0.0,
        empty_images=sum(share == 1.0 for share in missing),
        unseen=1 - seen / (len(chosen) * size**2) if targets and chosen else None,
        wet=wet / seen if targets and seen else None,
        dry_frames=dry, unseen_frames=unseen, published_wet=published,
    )  # fmt: skip


def _rain_counts(source: Source, rows: list[int], size: int) -> Iterator[tuple[int, int]]:
    for row in rows if source.radar is not None else []:
        rate, valid = source.rain(row, size)
        yield int(valid.sum()), int((rate >= np.float32(_RAIN)).sum())


def _remarks(found: list[Found]) -> list[str]:
    """What can be read but not used, or looks wrong."""
    remarks = []
    for one in found:
        name = f"{one.place} {one.split}"
        if one.windows == 0:
            remarks.append(f"{name}: no window without a gap in {one.rows} rows")
        if one.looked_at and one.empty_images == one.looked_at:
            remarks.append(f"{name}: every image looked at is empty")
        if one.unseen is not None and one.looked_at:
            if one.unseen_frames == one.looked_at:
                remarks.append(f"{name}: no radar saw anything")
            elif one.wet == 0:
                remarks.append(f"{name}: no rain in any frame looked at")
            elif one.wet == 1:
                remarks.append(f"{name}: rain everywhere that a radar saw; are dry pixels lost?")
    sizes = sorted({one.size for one in found})
    if len(sizes) > 1:
        remarks.append(f"sizes {', '.join(map(str, sizes))}: name regions or years of one size")
    return remarks
