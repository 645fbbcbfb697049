"""Remarks on the cell-free studies."""

from __future__ import annotations

from fewer.studies.remarks import Record
from fewer.studies.words import listed

__all__ = ["scaling", "statistics"]

_FAR = 2.0  # spreads over deployments


def statistics(record: Record) -> list[str]:
    """Which of the paper's figures are beyond the spread of deployments."""
    far = [row for row in record["rows"] if abs(float(row[5])) > _FAR]
    named = (f"{row[2]} at {row[0]} access points and {row[1]} candidates ({row[4]}, paper {row[3]})" for row in far)
    return [f"More than {_FAR:g} spreads from the paper: {len(far)} of {len(record['rows'])} figures: {listed(named)}."]


def scaling(record: Record) -> list[str]:
    """How weights and speed grow with the network."""
    first, last = record["rows"][0], record["rows"][-1]
    speeds = [float(row[2].replace(",", "")) for row in (first, last)]
    return [
        f"From {first[0]:,} to {last[0]:,} access points the weights grow {last[1] / first[1]:.0f}-fold, and phones a "
        f"second {speeds[1] / speeds[0]:.2f}-fold."
    ]
