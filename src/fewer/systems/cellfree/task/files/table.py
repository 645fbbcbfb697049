"""A table as loggers and spreadsheets write it: commas, semicolons or tabs, decimal commas, words for no value.

Where cells are apart by semicolons or tabs, a comma inside a number is a decimal comma, as spreadsheets of most of
Europe write it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fewer.core.errors import UserError

__all__ = ["Table", "read_table"]

_NOTHING = frozenset(("", "-", "--", "na", "n/a", "#n/a", "nan", "null", "none"))


@dataclass(frozen=True)
class Table:
    """Cells as text, and the line of the file in which each row stands."""

    name: str  # of the file
    header: list[str]
    rows: list[list[str]]
    lines: list[int]
    decimal_comma: bool

    def number(self, text: str) -> float:
        """NaN for a word that says there is none; a ValueError for any other word."""
        if text.lower() in _NOTHING:
            return np.nan
        if "_" in text:  # Python's own way to write thousands
            raise ValueError(text)
        return float(text.replace(",", ".") if self.decimal_comma else text)

    def numbers(self, column: int) -> list[float]:
        """A column; a word in it is refused with its line."""
        found = []
        for line, row in zip(self.lines, self.rows):
            try:
                found.append(self.number(row[column]))
            except ValueError:
                raise UserError(
                    f"{self.name} with {row[column]!r} in line {line}, column {self.header[column]}",
                    "a number",
                    "an empty cell or N/A where there is none",
                ) from None
        return found


def read_table(path: Path) -> Table:
    """The header and every row that is not empty; rows of another length are refused with their line."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:  # spreadsheets put a mark before the first column
            first = file.readline()
            apart = next((mark for mark in ";\t" if mark in first), ",")
            file.seek(0)
            reader = csv.reader(file, delimiter=apart)
            table = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path.name} ({error})", "a table as UTF-8 text", "save it as CSV UTF-8") from None
    (_, header), *rows = table or [(1, [])]
    for line, row in rows:
        if len(row) != len(header):
            raise UserError(f"{path.name} with {len(row)} cells in line {line}", f"{len(header)}, as in the header")
    return Table(path.name, header, [row for _, row in rows], [line for line, _ in rows], apart != ",")
