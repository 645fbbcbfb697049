"""Remarks on the vision studies: trainings that went wrong, features that stay robust, tickets, and the whole suite."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from fewer.attack.hardening.detectors import overfitting
from fewer.studies.remarks import Record
from fewer.studies.words import listed
from fewer.systems.vision.studies.measure import stood, troubles

__all__ = ["audits", "features", "tickets", "trainings"]

Row = Mapping[str, Any]
_CLASSES = 10
_ROBUST = "robust, "  # how columns of Figure 8 begin


def trainings(record: Record) -> list[str]:
    """How often each recipe stood on the plateau and was fooled by FGSM, then which trainings did."""
    details: Mapping[str, Sequence[dict[str, Any]]] = record["details"]
    lines = []
    for recipe in dict.fromkeys(name.split("-")[0] for name in details):
        rows = [row for name, found in details.items() if name.startswith(f"{recipe}-") for row in found]
        stayed = sum(stood(row, _CLASSES)[0] > 0 for row in rows)
        fooled = sum(overfitting(row["fgsm"], row["pgd40"]) is not None for row in rows)
        lines.append(
            f"{recipe} recipe: of {len(rows)} trainings {stayed} stood at the loss of guessing for a while, and of "
            f"{fooled} FGSM overstates the robustness."
        )
    return lines + [f"{name}: {line}" for name, found in details.items() for line in troubles(found, _CLASSES)]


def features(record: Record) -> list[str]:
    """How many features stay robust as the search gets stronger."""
    columns = [place for place, name in enumerate(record["columns"]) if name.startswith(_ROBUST)]
    lines = []
    for row in record["rows"]:
        counts = {record["columns"][place].removeprefix(_ROBUST): row[place] for place in columns if row[place] != ""}
        if len(counts) > 1:
            told = listed(f"{count} under {search}" for search, count in counts.items())
            lines.append(f"{row[0]}, {row[1]}: robust features of 100: {told}.")
    return lines


def tickets(record: Record) -> list[str]:
    """Where the first weights beat new ones, at the levels between 12 % and 1.5 % kept that the paper speaks of."""
    said = []
    for kind, rows in record["details"].items():
        share = {row["round"]: row["kept"] / row["weights"] for row in rows}
        # the paper counts biases, which are never pruned: its 1.5 % are 1.4 % of the weights
        levels = [number for number, kept in share.items() if 0.0135 <= kept <= 0.1205]
        for key in ("clean",) if kind == "normal" else ("clean", "fgsm" if kind == "fgsm" else "pgd40"):
            gains = [100 * (_mean(rows, n, "reset", key) - _mean(rows, n, "fresh", key)) for n in levels]
            if gains:
                won = sum(gain > 0 for gain in gains)
                said.append(
                    f"{kind} training, {key}: the first weights beat new ones at {won} of {len(gains)} levels between "
                    f"12 % and 1.5 % kept; the difference is {min(gains):+.1f} to {max(gains):+.1f} points."
                )
    return said


def _mean(rows: Sequence[Row], number: int, start: str, key: str) -> float:
    return statistics.fmean(row[key] for row in rows if row["round"] == number and row["start"] == start)


def audits(record: Record) -> list[str]:
    """What the whole suite left of each network that faced it."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in record["details"]["suite"]:
        groups.setdefault((row["piece"], row["pruning"], row["images"]), []).append(row)
    lines = []
    for (piece, pruning, images), rows in groups.items():
        robust = listed(f"{100 * row['robust']:.2f}" for row in rows)
        seeds = listed(row["seed"] for row in rows)
        lines.append(f"Whole suite, {images:,} images, {piece} {pruning}: {robust} % (seed {seeds}).")
    return lines
