"""The competition's files as data: windows without gaps, missing pixels as masks, read when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from fewer.core.errors import NoFiles, UserError
from fewer.systems.nowcast.task.bands import BANDS
from fewer.systems.nowcast.task.files.buffer_pool import recycled
from fewer.systems.nowcast.task.files.layout import Layout, Place, found_places, layout_of
from fewer.systems.nowcast.task.files.region_year import Source
from fewer.systems.nowcast.task.files.splits import Rows, Splits, read_splits
from fewer.systems.nowcast.task.files.thread_map import spread
from fewer.systems.nowcast.task.windows import LEADS, SEEN, Windows

__all__ = ["Archive", "Piece", "Reading", "open_archive", "source_of", "splits_of"]


@dataclass(frozen=True)
class Reading:
    """Which part of a folder to read, and how."""

    regions: tuple[str, ...] = ()  # none: all that are there
    years: tuple[int, ...] = ()
    layout: str = ""  # a competition's year or a .toml file; empty: as the folder looks
    literal: bool = False  # missing is 0 K, as in the competition's starter kit, not the mean
    cache: str = ""  # a folder for packed frames, filled as they are first read; empty: none


class Reader(Protocol):
    """Whoever can fill one sample."""

    def window_(self, start: int, out: Windows) -> None: ...


class Piece(NamedTuple):
    """One region-year of one split."""

    place: int  # its number among all places of the folder, the same in every split
    reader: Reader
    rows: Rows
    targets: bool


class Archive:
    """Windows of all pieces one after another; a split without targets has rate and valid 0."""

    in_memory = False

    def __init__(self, pieces: Sequence[Piece], places: tuple[Place, ...], size: int) -> None:
        self.pieces, self.places, self.size = tuple(pieces), places, size
        self._ends = np.cumsum([len(piece.rows.starts) for piece in pieces], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def take(self, index: Tensor) -> Windows:
        """The windows at a 1-D index, standardised, in float32."""
        count, size = len(index), self.size
        batch = Windows(
            satellite=recycled((count, SEEN, len(BANDS), size, size)),
            missing=recycled((count, SEEN, size, size)),
            rate=recycled((count, LEADS, size, size)),
            valid=recycled((count, LEADS, size, size)),
            place=torch.zeros(count, dtype=torch.int64),
        )
        found = [self.locate(sample) for sample in index.tolist()]

        def fill(slot: int) -> None:
            (piece, start), one = found[slot], Windows(*(leaf[slot] for leaf in batch))
            piece.reader.window_(start, one)
            if not piece.targets:
                one.rate.zero_()
                one.valid.zero_()
            batch.place[slot] = piece.place

        spread(fill, count)
        return batch

    def locate(self, sample: int) -> tuple[Piece, int]:
        """The piece a sample lies in and the first of its rows there."""
        if not 0 <= sample < len(self):
            raise IndexError(f"window {sample} of {len(self)}")
        number = int(np.searchsorted(self._ends, sample, side="right"))
        piece = self.pieces[number]
        return piece, int(piece.rows.starts[sample - int(self._ends[number])])

    def samples(self, piece: int) -> range:
        """The numbers of a piece's windows, in time's order."""
        end = int(self._ends[piece])
        return range(end - len(self.pieces[piece].rows.starts), end)

    def time(self, sample: int) -> np.datetime64:
        """When the last image was taken: lead times count from here."""
        piece, start = self.locate(sample)
        return np.datetime64(int(piece.rows.minutes[start + SEEN - 1]), "m")


def open_archive(root: str | Path, split: str, reading: Reading | None = None) -> Archive:
    """`train`, `validation`, `test` or `heldout` of a folder in the competition's layout.

    Every file is looked at now, so that a truncated one is named before hours are spent; none stays open.
    """
    root, reading = Path(root), reading or Reading()
    layout = layout_of(root, reading.layout)
    places = found_places(root, layout, regions=reading.regions, years=reading.years)
    pieces, sizes = [], {}
    for number, place in enumerate(places):
        source = source_of(root, layout, place, split, literal=reading.literal)
        if source is None:
            continue
        length, size = source.shape()
        rows = splits_of(root, layout, place.year).rows(split, place.year)
        if len(rows.minutes) != length:
            raise UserError(
                f"{source.satellite.name} of {place.year} with {length} rows",
                f"{len(rows.minutes)}, as the csv has for {split}", "is the csv of the same stage?",
            )  # fmt: skip
        sizes[size] = place
        reader: Reader = source
        if reading.cache:
            from fewer.systems.nowcast.task.files.packed import Cached

            reader = Cached(source, Path(reading.cache) / f"{place.year}.{place.region}.{split}")
        pieces.append(Piece(number, reader, rows, source.radar is not None))
    if not pieces:
        raise NoFiles(f"{root} without {split} files", f"some for {', '.join(map(str, places))}")
    if len(sizes) > 1:
        named = ", ".join(f"{size} ({place})" for size, place in sizes.items())
        raise UserError(f"{root} with sizes {named}", "one size", "name regions or years of one size")
    if not any(len(piece.rows.starts) for piece in pieces):
        span = SEEN + LEADS if split in ("train", "validation") else SEEN
        raise UserError(f"{root} without a {split} window", f"{span} rows without a gap", "fewer data nowcast --check")
    return Archive(pieces, places, next(iter(sizes)))


def source_of(root: Path, layout: Layout, place: Place, split: str, *, literal: bool = False) -> Source | None:
    """The files of one region-year; None if it has none for the split. Training without targets is refused."""
    satellite = layout.path(root, "satellite", place, split)
    radar = layout.path(root, "radar", place, split)
    if not satellite.exists() and not radar.exists():
        return None
    if split in ("train", "validation") or radar.exists():
        for path in (satellite, radar):
            if not path.exists():
                raise UserError(f"no {path}", f"images and rates of {place} for {split}", "copy it there")
        return Source(satellite, radar, (layout.satellite_key, layout.radar_key), literal)
    return Source(satellite, None, (layout.satellite_key, layout.radar_key), literal)


_TABLES: dict[tuple[Path, int], Splits] = {}  # by file and time of change: a csv takes a second to read


def splits_of(root: Path, layout: Layout, year: int) -> Splits:
    """The first csv of the layout that speaks of the year."""
    paths = layout.time_tables(root, year)
    for path in paths:
        key = (path, path.stat().st_mtime_ns)
        if key not in _TABLES:
            _TABLES[key] = read_splits(path)
        if (_TABLES[key].years == year).any():
            return _TABLES[key]
    names = ", ".join(path.name for path in paths) or "no csv of times"
    raise UserError(
        f"{root} with {names}", f"{layout.times[0]} with rows of {year}", "it is in the starter kit's data/"
    )
