"""What the numbers of a drive test mean: received power in dBm, not heard, or a mistake, told with its row.

An RSRP lies from -160 to below 0 dBm: phones report -140 to -44 in LTE and -156 to -31 in NR (3GPP TS 36.133 and
38.133), scanners a little beyond. Loggers mark what was not heard by an empty cell or by a number that no receiver can
measure. A zero or a positive number is neither, and would be the strongest signal of all.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewer.core.errors import Notice, UserError
from fewer.systems.cellfree.task.arrays import Floats

__all__ = ["Log", "checked_log", "unmarked"]

_LOWEST_DBM, _HIGHEST_DBM = -160.0, 0.0
_NOT_HEARD = (-999.0, -9999.0, -32768.0, 2147483647.0)  # the last is Android's CellInfo.UNAVAILABLE


@dataclass(frozen=True)
class Log:
    """Places and what was heard there, as a file holds them."""

    name: str  # of the file
    phones: Floats  # (n, 2) in metres
    rsrp_db: Floats  # (n, L), NaN where not heard
    lines: Sequence[int] = ()  # of each row in a table, from 1; none: an array, counted from 0

    def row(self, index: int) -> str:
        """Where somebody who opens the file finds it."""
        return f"line {self.lines[index]}" if len(self.lines) else f"row {index} (from 0)"


def unmarked(signals: Floats) -> Floats:
    """NaN instead of the numbers that stand for not heard."""
    return np.where(np.isin(signals, _NOT_HEARD), np.nan, signals)


def checked_log(log: Log) -> tuple[Floats, Floats]:
    """Places where something was heard, and what, NaN where not; a number that cannot be is refused with its row."""
    wrong = ~np.isfinite(log.phones).all(axis=1)
    if wrong.any():
        raise UserError(
            f"{log.name} with a place that is no number in {log.row(int(wrong.argmax()))}", "x and y in metres"
        )
    heard = unmarked(log.rsrp_db)
    wrong = ~np.isnan(heard) & ~((heard >= _LOWEST_DBM) & (heard < _HIGHEST_DBM))
    if wrong.any():
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        raise UserError(
            f"{log.name} with {heard[row, column]:g} dBm of access point {column + 1} in {log.row(row)}",
            f"received power from {_LOWEST_DBM:g} to below {_HIGHEST_DBM:g} dBm",
            "an empty cell, NaN or -999 where it was not heard",
        )
    silent, count = np.isnan(heard).all(axis=1), len(heard)
    if silent.all():
        raise UserError(f"{log.name} with {count:,} places where nothing was heard", "some signals")
    if silent.any():
        first = log.row(int(silent.argmax()))
        warnings.warn(
            f"{log.name}: left out {silent.sum():,} of {count:,} places where nothing was heard, first {first}",
            Notice,
            stacklevel=2,
        )
    return log.phones[~silent], heard[~silent]
