"""What the competition takes: `<year>/<region>.pred.h5[.gz]` in a zip with the years at its root.

In 2022 the files held 0 and 1; in 2023 rates in mm/h, for the contest in nowcasting of the first 16 lead times alone.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewer.core.errors import UserError
from fewer.core.files.atomic import refusal
from fewer.systems.nowcast.task.files.frames import LARGEST
from fewer.systems.nowcast.task.files.layout import Place
from fewer.systems.nowcast.task.files.region_year import opened
from fewer.systems.nowcast.task.windows import LEADS

__all__ = ["KEY", "RULES", "Expected", "Rules", "verify", "write_forecast", "write_zip"]

KEY = "submission"
_NAME = re.compile(r"(?P<year>\d{4})/(?P<region>[^/]+)\.pred\.h5(?P<packed>\.gz)?")
_DAY = (2022, 1, 1, 0, 0, 0)  # in the zip, so that equal forecasts give equal files


class Rules(NamedTuple):
    """What a year's contest asks of every pixel."""

    slots: int = LEADS  # lead times, the first ones
    rates: bool = False  # mm/h instead of 0 and 1

    def odd(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Where a value is none of those that are taken."""
        if not self.rates:
            return ~np.isin(values, (0, 1))
        return ~((values >= 0) & (values <= LARGEST))  # NaN compares to nothing

    def words(self) -> str:
        """The values that are taken."""
        return f"rates from 0 to {LARGEST:g} mm/h" if self.rates else "0 and 1"

    def dtypes(self) -> tuple[str, ...]:
        """The types that are taken."""
        return ("float32",) if self.rates else ("float32", "uint8")


RULES = {"2022": Rules(), "2023": Rules(rates=True), "2023-nowcasting": Rules(slots=16, rates=True)}


@dataclass(frozen=True)
class Expected:
    """How many forecasts each region-year takes, and of what; the competition's 60 and 252 by default."""

    samples: int = 60
    size: int = 252
    rules: Rules = RULES["2022"]

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """As documented, and as the organisers' own writer squeezes it; both were taken."""
        each = (self.rules.slots, self.size, self.size)
        return (self.samples, 1, *each), (self.samples, *each)


def write_forecast(
    folder: Path, place: Place, batches: Iterable[NDArray[Any]], expected: Expected, *, dtype: str = "float32"
) -> Path:
    """One region-year, batch after batch (count, slots, size, size) in the order of the test blocks, then gzipped.

    Holds one batch in memory, whatever the number of blocks.
    """
    import h5py

    if dtype not in expected.rules.dtypes():
        raise UserError(f"dtype {dtype!r}", f"{' or '.join(expected.rules.dtypes())} for {expected.rules.words()}")
    target = folder / str(place.year) / f"{place.region}.pred.h5.gz"
    plain, packed = target.with_suffix(".part"), target.with_suffix(".gz.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(plain, "w") as file:
            dataset = file.create_dataset(KEY, shape=expected.shapes()[0], dtype=dtype)
            done = 0
            for batch in batches:
                _judge(batch, place, expected, done)
                dataset[done : done + len(batch), 0] = batch
                done += len(batch)
        if done != expected.samples:
            raise UserError(f"{done} forecasts of {place}", f"{expected.samples}, one a test block")
        with open(plain, "rb") as source, open(packed, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
        os.replace(packed, target)
    except OSError as error:
        raise refusal(error, target) from error
    finally:
        for path in (plain, packed):
            path.unlink(missing_ok=True)
    return target


def _judge(batch: NDArray[Any], place: Place, expected: Expected, done: int) -> None:
    if batch.shape[1:] != expected.shapes()[1][1:] or done + len(batch) > expected.samples:
        raise UserError(f"forecasts {batch.shape} of {place} after {done}", f"{expected.shapes()[1]} in all")
    rules = expected.rules
    if rules.odd(batch).any():
        cure = "make them rates" if rules.rates else "compare probabilities to a threshold"
        raise UserError(f"{batch[rules.odd(batch)][0]} in the forecasts of {place}", rules.words(), cure)


def write_zip(folder: Path, path: Path) -> None:
    """All year folders below `folder`, stored as they are: the files are packed already."""
    names = sorted(
        p.relative_to(folder).as_posix() for p in folder.glob("*/*.pred.h5*") if not p.name.endswith(".part")
    )
    if not names:
        raise UserError(f"{folder} without forecasts", "files such as 2019/boxi_0015.pred.h5.gz")
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
            for name in names:
                entry = zipfile.ZipInfo(name, _DAY)
                entry.external_attr = 0o644 << 16
                with open(folder / name, "rb") as source, archive.open(entry, "w", force_zip64=True) as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
        os.replace(part, path)
    except OSError as error:
        raise refusal(error, path) from error
    finally:
        part.unlink(missing_ok=True)


def verify(path: Path, wanted: Mapping[Place, Expected]) -> list[str]:
    """What the competition's server would stumble over; empty if nothing. Takes a zip, or the folder before zipping."""
    problems: list[str] = []
    seen: dict[Place, str] = {}
    for name, open_member in _members(path):
        match = _NAME.fullmatch(name)
        if match is None:
            problems.append(f"{name}: not <year>/<region>.pred.h5 or .pred.h5.gz at the root")
            continue
        place = Place(match["region"], int(match["year"]))
        if place in seen:
            problems.append(f"{name}: {place} is already in {seen[place]}")
        elif place not in wanted:
            problems.append(f"{name}: {place} is not asked for")
        else:
            seen[place] = name
            reasons = _reasons(open_member, match["packed"] is not None, wanted[place])
            problems += [f"{name}: {reason}" for reason in reasons]
    return problems + [f"no forecast of {place}" for place in wanted if place not in seen]


def _members(path: Path) -> Iterator[tuple[str, Any]]:
    if path.is_dir():
        for file in sorted(p for p in path.rglob("*") if p.is_file()):
            yield file.relative_to(path).as_posix(), partial(open, file, "rb")
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield entry.filename, partial(archive.open, entry)
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} ({error})", "a zip, or a folder with year folders") from None


def _reasons(open_member: Any, packed: bool, expected: Expected) -> list[str]:
    most = int(np.prod(expected.shapes()[0])) * 8 + (1 << 24)  # bytes: float64 would still be read, a bomb not
    try:
        with open_member() as raw, _unpacked(raw, packed, most) as file, opened(file) as held:
            if KEY not in held:
                return [f"{', '.join(held) or 'nothing'} in it; expected a dataset {KEY}"]
            return _content(held[KEY], expected)
    except UserError as error:
        return [f"{error.given.split(': ', 1)[-1]}; expected {error.expected}"]
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
        return [f"cannot be read ({str(error).splitlines()[0]})"]


@contextmanager
def _unpacked(raw: IO[bytes], packed: bool, most: int) -> Iterator[Path]:
    """A member as a file on disk, which HDF5 needs."""
    with tempfile.TemporaryDirectory() as folder:
        path, size = Path(folder) / "member.h5", 0
        source: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        with open(path, "wb") as sink:
            while block := source.read(1 << 20):
                size += len(block)
                if size > most:
                    raise UserError(f"more than {most} bytes", f"at most {most}")
                sink.write(block)
        yield path


def _content(dataset: Any, expected: Expected) -> list[str]:
    shape, reasons = tuple(dataset.shape), []
    if shape not in expected.shapes():
        wanted = " or ".join(map(str, expected.shapes()))
        return [f"{shape}; expected {wanted}"]
    rules = expected.rules
    if dataset.dtype.name not in rules.dtypes():
        reasons.append(f"{dataset.dtype.name}; expected {' or '.join(rules.dtypes())}")
    for sample in range(shape[0]):
        values = dataset[sample]
        if (odd := rules.odd(values)).any():
            reasons.append(f"{values[odd][0]} in forecast {sample}; expected {rules.words()}")
            break
    return reasons
