"""Which files are events to learn from: one table in the folder, or the folder itself.

`events.csv` has a line for each event with the columns `split` (train, validation or test), `seen` and `forecast`:
paths below the folder, which may be a file, a folder or a pattern such as `2019/*.h5`. An empty `forecast` means that
what is seen is forecast, radar to radar. Two more columns may be left out: `seen_variable` and `forecast_variable`,
names of netCDF variables, several with spaces between them.

Without the table every npz file and every sub-folder is an event, in the order of their names: the last is for
testing, the one before it for validation, the others for training. One or two events are each cut in time instead:
the first 70 % of the images, then 15 %, then 15 %.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from fewer.core.errors import NoFiles, UserError

__all__ = ["TABLE", "Line", "lines"]

TABLE = "events.csv"
_SPLITS = ("train", "validation", "test")
_NEEDED = ("split", "seen", "forecast")
_CUTS = {"train": (0.0, 0.7), "validation": (0.7, 0.85), "test": (0.85, 1.0)}


@dataclass(frozen=True)
class Line:
    """An event of one split."""

    split: str
    seen: tuple[Path, ...]
    forecast: tuple[Path, ...]  # none: what is seen
    seen_variables: tuple[str, ...] = ()
    forecast_variables: tuple[str, ...] = ()
    share: tuple[float, float] = (0.0, 1.0)  # of its time

    @property
    def name(self) -> str:
        first = self.seen[0]
        return first.stem if len(self.seen) == 1 else f"{first.parent.name or first.stem}"


def lines(folder: Path) -> list[Line]:
    """Of the table, or of the folder."""
    table = folder / TABLE
    return _read(table) if table.is_file() else _found(folder)


def _read(table: Path) -> list[Line]:
    try:
        with table.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
            columns = rows[0].keys() if rows else ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{table} ({error})", "a table of events") from None
    if missing := [name for name in _NEEDED if name not in columns]:
        raise UserError(f"{table} without {', '.join(missing)}", f"lines with {', '.join(_NEEDED)}")
    return [_line(table, number, row) for number, row in enumerate(rows, 2)]


def _line(table: Path, number: int, row: dict[str, str | None]) -> Line:
    values = {key: (value or "").strip() for key, value in row.items() if key}
    if values["split"] not in _SPLITS:
        raise UserError(f"line {number} of {table.name} with split {values['split']!r}", f"one of {', '.join(_SPLITS)}")
    if not values["seen"]:
        raise UserError(f"line {number} of {table.name} without what is seen", "a file, a folder or a pattern")
    seen, forecast = (_paths(table.parent, values[name], number) for name in ("seen", "forecast"))
    names = [tuple(values.get(f"{which}_variable", "").split()) for which in ("seen", "forecast")]
    return Line(values["split"], seen, forecast, names[0], names[1])


def _paths(folder: Path, word: str, number: int) -> tuple[Path, ...]:
    if not word:
        return ()
    if (folder / word).exists():
        return (folder / word,)
    try:
        found = tuple(sorted(folder.glob(word)))
    except (ValueError, NotImplementedError):
        found = ()
    if not found:
        raise NoFiles(f"line {number} of {TABLE}: {word}", "a file, a folder or a pattern below the table's folder")
    return found


def _found(folder: Path) -> list[Line]:
    events = sorted(one for one in folder.iterdir() if _is_event(one))
    if not events:
        loose = sorted(one for one in folder.iterdir() if one.is_file() and not one.name.startswith("."))
        if not loose:
            raise NoFiles(f"{folder} without files", "radar or satellite files, or the competition's")
        return [Line(split, (folder,), (), share=share) for split, share in _CUTS.items()]
    if len(events) < 3:
        return [Line(split, (one,), (), share=share) for one in events for split, share in _CUTS.items()]
    splits = ["train"] * (len(events) - 2) + ["validation", "test"]
    return [Line(split, (one,), ()) for split, one in zip(splits, events)]


def _is_event(path: Path) -> bool:
    return not path.name.startswith(".") and (path.is_dir() or path.suffix == ".npz")
