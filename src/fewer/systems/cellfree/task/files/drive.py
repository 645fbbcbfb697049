"""A drive test as a table: wide, one column per access point, or long, one row per phone and access point.

Wide: `x_m,y_m,NAME@X:Y,NAME@X:Y,...`, one row per place, a cell without a number where it was not heard.
Long: columns `x_m`, `y_m`, `access_point`, `ap_x_m`, `ap_y_m` and `rsrp_dbm` in any order, beside any others; the rows
of one place belong together. Other common names of these columns are in `_COLUMNS`.
"""

from __future__ import annotations

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.cellfree.task.arrays import Floats, Integers
from fewer.systems.cellfree.task.files.signals import Log, check_places, powers
from fewer.systems.cellfree.task.files.table import Table

__all__ = ["logged"]

_COLUMNS = {
    "x_m": ("x_m", "x", "easting_m", "easting", "utm_e"),
    "y_m": ("y_m", "y", "northing_m", "northing", "utm_n"),
    "access_point": ("access_point", "ap", "ap_name", "cell", "cell_name", "site"),
    "ap_x_m": ("ap_x_m", "ap_x", "ap_easting_m", "ap_easting"),
    "ap_y_m": ("ap_y_m", "ap_y", "ap_northing_m", "ap_northing"),
    "rsrp_dbm": ("rsrp_dbm", "rsrp", "rsrp_db"),
}
_DEGREES = {"lat", "lon", "lng", "latitude", "longitude"}
_EXPECTED = (
    "x_m,y_m,NAME@X:Y,... with one column per access point, or x_m,y_m,access_point,ap_x_m,ap_y_m,rsrp_dbm with one "
    "row per phone and access point"
)


def logged(table: Table, unheard: tuple[float, ...]) -> tuple[Floats, Log]:
    """(L, 2) places of access points, and the log with their names."""
    header = [name.lower() for name in table.header]
    if any("@" in name for name in header):
        if [_meant(name) for name in header[:2]] != ["x_m", "y_m"] or not all("@" in name for name in header[2:]):
            raise _refused(table)
        return _wide(table, unheard)
    columns = {meant: index for index, name in reversed([*enumerate(header)]) if (meant := _meant(name))}
    if columns.keys() != _COLUMNS.keys():
        raise _refused(table)
    return _long(table, columns, unheard)


def _meant(name: str) -> str:
    return next((meant for meant, names in _COLUMNS.items() if name in names), "")


def _refused(table: Table) -> UserError:
    degrees = _DEGREES & {name.lower() for name in table.header}
    shown = ",".join(table.header[:8]) + (",..." if len(table.header) > 8 else "")
    cure = "places are metres: project degrees first, such as to UTM" if degrees else ""
    return UserError(f"{table.name} with header {shown or '(none)'}", _EXPECTED, cure)


def _wide(table: Table, unheard: tuple[float, ...]) -> tuple[Floats, Log]:
    names, places = [], []
    for head in table.header[2:]:
        name, _, place = head.rpartition("@")
        try:
            x, y = (table.number(part) for part in place.split(":"))
        except ValueError:
            raise UserError(f"{table.name} with column {head!r}", "NAME@X:Y, its place in metres") from None
        names.append(name)
        places.append((x, y))
    cells = np.array([table.numbers(column) for column in range(len(table.header))]).T.reshape(-1, len(table.header))
    log = Log(table.name, cells[:, :2], cells[:, 2:], tuple(names), table.lines)
    check_places(log)
    return np.array(places).reshape(-1, 2), log.heard(powers(log, unheard))


def _long(table: Table, columns: dict[str, int], unheard: tuple[float, ...]) -> tuple[Floats, Log]:
    """Rows of one place and access point count as one, with the mean of what was heard."""
    said = [row[columns["access_point"]] for row in table.rows]
    names = tuple(dict.fromkeys(said))
    index = {name: number for number, name in enumerate(names)}
    point = np.array([index[name] for name in said], dtype=np.int64)
    x, y, ap_x, ap_y, rsrp = (np.array(table.numbers(columns[name])) for name in _COLUMNS if name != "access_point")
    log = Log(table.name, np.stack([x, y], axis=1), rsrp[:, None], ("",), table.lines)
    check_places(log)
    power = powers(log, unheard, says=lambda row: f"access point {said[row]}")[:, 0]
    places, which, first = _in_order(log.phones)
    total, times = np.zeros((len(places), len(names))), np.zeros((len(places), len(names)))
    np.add.at(total, (which, point), np.nan_to_num(power))
    np.add.at(times, (which, point), ~np.isnan(power))
    mean = np.divide(total, times, out=np.full_like(total, np.nan), where=times > 0)
    positions = _positions(table, names, point, np.stack([ap_x, ap_y], axis=1))
    return positions, Log(table.name, places, mean, names, [table.lines[row] for row in first])


def _in_order(phones: Floats) -> tuple[Floats, Integers, Integers]:
    """Places as they first appear, the place of each row, and each place's first row."""
    _, first, which = np.unique(phones, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return phones[first[order]], rank[which.reshape(-1)], first[order]


def _positions(table: Table, names: tuple[str, ...], point: Integers, given: Floats) -> Floats:
    """One place of each access point; one that moves is refused with its line."""
    first = np.array([int(np.argmax(point == number)) for number in range(len(names))], dtype=np.int64)
    moved = (given != given[first][point]).any(axis=1)
    if moved.any():
        row = int(moved.argmax())
        stood = given[first[point[row]]]
        raise UserError(
            f"{table.name} with access point {names[point[row]]} at {given[row, 0]:g}, {given[row, 1]:g} in line "
            f"{table.lines[row]}",
            f"its place of line {table.lines[first[point[row]]]}, {stood[0]:g}, {stood[1]:g}",
            "an access point stands still",
        )
    return given[first].reshape(-1, 2)
