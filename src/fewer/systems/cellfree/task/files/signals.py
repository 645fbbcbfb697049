"""What the numbers of a drive test mean: received power in dBm, not heard, or a mistake, told with its row.

An RSRP lies from -160 to below 0 dBm: phones report -140 to -44 in LTE and -156 to -31 in NR (3GPP TS 36.133 and
38.133), scanners a little beyond. A zero or a positive number would be the strongest signal of all, and -999 the
weakest; a number that only marks what was not heard has to be named, by the setting `unheard`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fewer.core.errors import Notice, UserError
from fewer.systems.cellfree.task.arrays import Bools, Floats

__all__ = ["Log", "audible", "check_places", "powers", "unmarked"]

_LOWEST_DBM, _HIGHEST_DBM = -160.0, 0.0
_MARKS = (-999.0, -9999.0, -32768.0, 2147483647.0)  # loggers' own; the last is Android's CellInfo.UNAVAILABLE


@dataclass(frozen=True)
class Log:
    """Places and what was heard there, as a file holds them."""

    name: str  # of the file
    phones: Floats  # (n, 2) in metres
    rsrp_db: Floats  # (n, L), NaN where not heard
    names: tuple[str, ...] = ()  # of the access points; none: they are counted from 1
    lines: Sequence[int] = ()  # of each row in a table, from 1; none: an array, counted from 0

    def row(self, index: int) -> str:
        """Where somebody who opens the file finds it."""
        return f"line {self.lines[index]}" if len(self.lines) else f"row {index} (from 0)"

    def heard(self, rsrp_db: Floats) -> Log:
        """The same places with other signals."""
        return replace(self, rsrp_db=rsrp_db)


def unmarked(signals: Floats, unheard: tuple[float, ...]) -> Floats:
    """NaN instead of the numbers that stand for not heard."""
    return np.where(np.isin(signals, unheard), np.nan, signals)


def check_places(log: Log) -> None:
    """A place that is no number is refused with its row."""
    wrong = ~np.isfinite(log.phones).all(axis=1)
    if wrong.any():
        raise UserError(
            f"{log.name} with a place that is no number in {log.row(int(wrong.argmax()))}", "x and y in metres"
        )


def powers(log: Log, unheard: tuple[float, ...], *, says: Callable[[int], str] | None = None) -> Floats:
    """What was heard, NaN where not; a number that no receiver measures is refused with its row.

    `says` names the access point of a row where a table has one in every row.
    """
    heard = unmarked(log.rsrp_db, unheard)
    wrong = ~np.isnan(heard) & ~((heard >= _LOWEST_DBM) & (heard < _HIGHEST_DBM))
    if not wrong.any():
        return heard
    row, column = (int(index) for index in np.argwhere(wrong)[0])
    value = float(heard[row, column])
    who = says(row) if says else f"access point {log.names[column] if log.names else column + 1}"
    mark = f"if it marks what was not heard, --set unheard={value:.10g}"
    raise UserError(
        f"{log.name} with {value:.10g} dBm of {who} in {log.row(row)}",
        f"received power from {_LOWEST_DBM:g} to below {_HIGHEST_DBM:g} dBm",
        mark if value in _MARKS else "an empty cell, N/A or NaN where it was not heard",
    )


def audible(log: Log) -> Log:
    """The places where something was heard; how many are left out is told."""
    silent: Bools = np.asarray(np.isnan(log.rsrp_db).all(axis=1))
    count = len(log.rsrp_db)
    if silent.all():
        raise UserError(f"{log.name} with {count:,} places where nothing was heard", "some signals")
    if silent.any():
        first = log.row(int(silent.argmax()))
        warnings.warn(
            f"{log.name}: left out {silent.sum():,} of {count:,} places where nothing was heard, first {first}",
            Notice,
            stacklevel=2,
        )
    lines = [line for line, quiet in zip(log.lines, silent) if not quiet]
    return Log(log.name, log.phones[~silent], log.rsrp_db[~silent], log.names, lines)
