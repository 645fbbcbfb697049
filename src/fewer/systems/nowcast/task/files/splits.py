"""The csv that says when each image was taken and what it is for: the HDF5 files themselves know no time."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.systems.nowcast.task.windows import LEADS, SEEN

__all__ = ["PRODUCTS", "STEP", "Rows", "Splits", "read_splits"]

STEP = 15  # minutes from one image to the next
SPAN = SEEN + LEADS
PRODUCTS = ("RATE", "ACRR", "DBZH", "REFL-BT")
_WORDS = {"train": "training", "validation": "validation"}
_NEEDED = ("time", "date_str", "all_vars", "split", "split_type")

Integers = NDArray[np.int64]


class Rows(NamedTuple):
    """What one year's file of one split holds, row by row, and where its windows begin."""

    minutes: Integers  # since 1970, of every row of the HDF5 file
    starts: Integers  # rows at which a window without a gap begins

    @property
    def gaps(self) -> int:
        """How often the next row is not the next quarter of an hour."""
        return int((np.diff(self.minutes) != STEP).sum())


@dataclass(frozen=True)
class Splits:
    """One csv, sorted by time."""

    path: Path
    minutes: Integers
    split: NDArray[np.str_]
    kind: NDArray[np.str_]  # the csv's split_type
    complete: NDArray[np.bool_]  # all products are there
    products: Mapping[str, NDArray[np.bool_]]

    @property
    def years(self) -> Integers:
        """Of every row."""
        return self.minutes.astype("datetime64[m]").astype("datetime64[Y]").astype(np.int64) + 1970

    def rows(self, split: str, year: int) -> Rows:
        """Row k of the year's file is the k-th kept row of the csv; years are counted apart."""
        if split in _WORDS:
            kept = (self.split == _WORDS[split]) & self.complete
        else:
            kept = self.kind == f"{split}_in"  # targets and buffers of test blocks are nobody's to see
        kept &= self.years == year
        minutes, kind = self.minutes[kept], self.kind[kept]
        if split == "train":
            starts = _unbroken(minutes, SPAN)
        elif split == "validation":
            starts = np.intersect1d(_unbroken(minutes, SPAN), _begins(minutes, kind == "validation_in"))
        else:
            starts = np.arange(0, len(minutes) - SEEN + 1, SEEN)
            broken = np.setdiff1d(starts, _unbroken(minutes, SEEN))
            if len(minutes) % SEEN or len(broken):
                where = minutes[broken[0]].astype("datetime64[m]") if len(broken) else f"{len(minutes)} rows"
                raise UserError(
                    f"{self.path.name} with a broken {split} block of {year} ({where})", f"blocks of {SEEN}"
                )
        return Rows(minutes, starts)


def _unbroken(minutes: Integers, span: int) -> Integers:
    """Where `span` rows follow each other a quarter of an hour apart: first and last exactly that far apart."""
    if len(minutes) < span:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(minutes[span - 1 :] - minutes[: len(minutes) - span + 1] == (span - 1) * STEP)


def _begins(minutes: Integers, seen: NDArray[np.bool_]) -> Integers:
    """The first rows of runs that are seen: a gap or something unseen comes before."""
    begins = seen.copy()
    begins[1:] &= ~(seen[:-1] & (np.diff(minutes) == STEP))
    return np.flatnonzero(begins)


def read_splits(path: Path) -> Splits:
    """Both stages' csv; `time` is HHMMSS whose leading zeros may have been lost."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            rows, names = list(reader), reader.fieldnames or []
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path} ({error})", "the competition's csv of times and splits") from None
    for name in _NEEDED:
        if name not in names:
            raise UserError(f"{path.name} without a column {name}", f"{', '.join(_NEEDED)} and the products")
    if not rows:
        raise UserError(f"{path.name} without rows", "one row every 15 minutes")
    for number, row in enumerate(rows, start=2):  # line 1 is the header
        if None in row or None in row.values():
            raise UserError(f"row {number} of {path.name} with too few or too many columns", f"{len(names)}, as above")
    minutes = _minutes(path, rows)
    order = np.argsort(minutes, kind="stable")
    same = np.flatnonzero(np.diff(minutes[order]) == 0)
    if len(same):
        when = minutes[order][same[0]].astype("datetime64[m]")
        raise UserError(f"{path.name} with {when} twice", "each time once", "one csv a stage, not several joined")
    flags = {name: _flags(rows, name)[order] for name in ("all_vars", *PRODUCTS) if name in names}
    return Splits(
        path=path,
        minutes=minutes[order],
        split=np.array([str(row["split"]).strip() for row in rows])[order],
        kind=np.array([str(row["split_type"]).strip() for row in rows])[order],
        complete=flags.pop("all_vars"),
        products=flags,
    )


def _flags(rows: Sequence[Mapping[str, Any]], name: str) -> NDArray[np.bool_]:
    return np.array([str(row[name]).strip() in ("1", "1.0", "True") for row in rows])


def _minutes(path: Path, rows: Sequence[Mapping[str, Any]]) -> Integers:
    texts = []
    for number, row in enumerate(rows, start=2):  # line 1 is the header
        date, time = str(row["date_str"]).strip(), str(row["time"]).strip().zfill(6)
        if not (len(date) == 8 and len(time) == 6 and (date + time).isdecimal() and time.endswith("00")):
            raise UserError(f"line {number} of {path.name}: {date} {time}", "YYYYMMDD and HHMMSS, whole minutes")
        texts.append(f"{date[:4]}-{date[4:6]}-{date[6:]}T{time[:2]}:{time[2:4]}")
    try:
        minutes = np.array(texts, dtype="datetime64[m]").astype(np.int64)
    except ValueError as error:
        raise UserError(f"{path.name}: {error}", "dates and times of the calendar") from None
    odd = np.flatnonzero(minutes % STEP)
    if len(odd):
        raise UserError(f"line {odd[0] + 2} of {path.name}: {texts[odd[0]]}", f"times every {STEP} minutes")
    return np.asarray(minutes)
