"""Remarks on the control studies: layers and bytes; those on scores are in `score_remarks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.studies.remarks import Record
from fewer.studies.words import between, listed

__all__ = ["files", "layers", "sizes"]

Row = Sequence[Any]
_METHODS = {"SNIP": 3, "GraSP": 5}  # columns of Figure 3 with the percentage kept


def layers(record: Record) -> list[str]:
    """Where each method keeps the last layers more than the layers before, and whether GraSP keeps them more."""
    rows = record["rows"]
    ends = [row for row in rows if _is_last(row, rows)]
    lines = []
    for method, column in _METHODS.items():
        most = [row[0] for row in ends if _share(row, column) > max(_share(one, column) for one in _before(row, rows))]
        rest = [row[0] for row in ends if row[0] not in most]
        lines.append(
            f"{method} keeps a larger share of the last layer than of every layer before it in {listed(most)}; "
            f"not in {listed(rest)}."
        )
    snip, grasp = _METHODS.values()
    more = [row[0] for row in ends if _share(row, grasp) > _share(row, snip)]
    less = [row[0] for row in ends if _share(row, grasp) < _share(row, snip)]
    lines.append(
        f"The paper says that GraSP keeps the last layers more than SNIP does: here it keeps more of {listed(more)} "
        f"and less of {listed(less)}."
    )
    return lines


def _share(row: Row, column: int) -> float:
    return float(row[column])


def _is_last(row: Row, rows: Sequence[Row]) -> bool:
    """The heads of a network that has heads; the last of a body otherwise."""
    network, _, layer = row[0].partition(".")
    own = [other[0].partition(".")[2] for other in rows if other[0].partition(".")[0] == network]
    heads = [name for name in own if not name.startswith("body.")]
    return layer in heads if heads else layer == own[-1]


def _before(row: Row, rows: Sequence[Row]) -> list[Row]:
    network = row[0].partition(".")[0]
    return [other for other in rows if other[0].partition(".")[0] == network and not _is_last(other, rows)]


def sizes(record: Record) -> list[str]:
    """Where coordinates and packs are larger or smaller than the dense file."""
    rows = [[float(cell) for cell in row] for row in record["rows"]]
    larger = listed(f"{removed:g}" for removed, dense, coordinates, _ in rows if coordinates > dense)
    small = sum(pack < min(dense, coordinates) for _, dense, coordinates, pack in rows)
    return [
        f"Coordinates take more bytes than the dense file at {larger} % removed; the pack takes fewer than both at "
        f"{small} of {len(rows)} sparsities."
    ]


def files(record: Record) -> list[str]:
    """How much smaller the paper's files and ours are, and how far apart the same ones."""
    rows = record["rows"]
    dense = {row[0]: row[2] for row in rows if row[1] == "dense"}
    pruned = [row for row in rows if row[1].endswith("% as COO")]
    shrunk = [dense[row[0]] / row[2] for row in pruned]
    apart = [
        f"{method} {between((float(row[4]) for row in pruned if row[1].startswith(method)), '+.1f')} %"
        for method in _METHODS
    ]
    packs = [
        f"{between(float(row[5]) for row in rows if row[1].endswith(values))} times ({values})"
        for values in ("float32", "float16", "int8")
    ]
    return [
        f"Pruned files as coordinates are {between(shrunk)} times smaller than dense ones in the paper and "
        f"{between(float(row[5]) for row in pruned)} times here; from the paper's, ours differ by {listed(apart)}.",
        f"Our packs of the same networks are smaller than the dense file {listed(packs)}.",
    ]
