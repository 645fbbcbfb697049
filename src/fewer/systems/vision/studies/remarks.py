"""Remarks on the vision studies: trainings that went wrong, features that stay robust, tickets, and the whole suite."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from fewer.attack.hardening.detectors import overfitting
from fewer.studies.remarks import Record
from fewer.studies.words import listed
from fewer.systems.vision.studies.capacity import PAPER, recipe_of
from fewer.systems.vision.studies.measure import stood, troubles
from fewer.systems.vision.studies.mismatch import JUDGES, nearest_point, parts

__all__ = ["audits", "explained", "explanations", "features", "tickets", "trainings", "variants"]

Row = Mapping[str, Any]
_CLASSES = 10
_ROUNDS = 20  # of the paper's figures
_CLOSE = 5.0  # points within which a number counts as reproduced
_ROBUST = "robust, "  # how columns of Figure 8 begin


def trainings(record: Record) -> list[str]:
    """How often each recipe stood on the plateau and was fooled by FGSM, then which trainings did."""
    details: Mapping[str, Sequence[dict[str, Any]]] = record["details"]
    lines = []
    for recipe in dict.fromkeys(map(recipe_of, details)):
        rows = [row for name, found in details.items() if recipe_of(name) == recipe for row in found]
        stayed = sum(stood(row, _CLASSES)[0] > 0 for row in rows)
        fooled = sum(overfitting(row["fgsm"], row["pgd40"]) is not None for row in rows)
        lines.append(
            f"{recipe} recipe: of {len(rows)} trainings {stayed} stood at the loss of guessing for a while, and of "
            f"{fooled} FGSM overstates the robustness."
        )
    hardened = {name: found for name, found in details.items() if recipe_of(name) != "standard"}
    return lines + [f"{name}: {line}" for name, found in hardened.items() for line in troubles(found, _CLASSES)]


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
    for name, rows in record["details"].items():
        kind = name.split("-")[-1]
        share = {row["round"]: row["kept"] / row["weights"] for row in rows}
        # the paper counts biases, which are never pruned: its 1.5 % are 1.4 % of the weights
        levels = [number for number, kept in share.items() if 0.0135 <= kept <= 0.1205]
        for key in ("clean",) if kind == "normal" else ("clean", "fgsm" if kind == "fgsm" else "pgd40"):
            gains = [100 * (_mean(rows, n, "reset", key) - _mean(rows, n, "fresh", key)) for n in levels]
            if gains:
                won = sum(gain > 0 for gain in gains)
                said.append(
                    f"{name.replace('-', ', ')} training, {key}: the first weights beat new ones at {won} of "
                    f"{len(gains)} levels between 12 % and 1.5 % kept; the difference is {min(gains):+.1f} to "
                    f"{max(gains):+.1f} points."
                )
        said += _end(name, rows)
    return said


def _end(name: str, rows: Sequence[Row]) -> list[str]:
    """What is left in the last round, which has few weights in the output layer where all layers lose alike."""
    last = max(row["round"] for row in rows)
    if last < _ROUNDS:
        return []
    row = next(row for row in rows if row["round"] == last and row["start"] == "reset")
    clean, first = (100 * _mean(rows, number, "reset", "clean") for number in (last, 0))
    head = next(kept for layer, kept in row["layers"].items() if "head" in layer)
    return [
        f"{name.replace('-', ', ')} training, round {last}: {row['kept']:,} of {row['weights']:,} weights are left, "
        f"{head} in the output layer; clean accuracy {clean:.1f} % after {first:.1f} % unpruned."
    ]


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


def variants(record: Record) -> list[str]:
    """What depth and width change under PGD-40, scale by scale."""
    rows: Mapping[str, Sequence[dict[str, Any]]] = record["details"]
    lines = []
    for name, found in rows.items():
        base, _, kind = name.rpartition("-")
        if kind in ("deep", "wide") and base in rows:
            gain = 100 * (
                statistics.fmean(r["pgd40"] for r in found) - statistics.fmean(r["pgd40"] for r in rows[base])
            )
            more = found[0]["weights"] / rows[base][0]["weights"]
            lines.append(f"{base} {kind}: {gain:+.1f} points under PGD-40 with {more:.2f} times the weights.")
    return lines + [f"{name}: {line}" for name, found in rows.items() for line in troubles(list(found), _CLASSES)]


def explained(record: Record) -> dict[tuple[str, str], dict[int, bool]]:
    """For each attack and way of making a number (candidate, judge): which scales come within 5 points of the paper.

    Scale 3 counts as met where it stays robust: above 50 % under the same attack.
    """
    found: dict[tuple[str, str], dict[int, bool]] = {}
    for name, rows in record["details"].items():
        candidate, attack, number = parts(name)
        paper = PAPER[attack][number]
        clean = 100 * statistics.fmean(row["clean"] for row in rows)
        for judge, attacked in _judgements(rows, attack).items():
            met = abs(clean - paper[0]) <= _CLOSE and abs(attacked - paper[1]) <= _CLOSE
            found.setdefault((attack, f"{candidate}, {judge}"), {})[number] = met if number < 3 else attacked > 50
        point = nearest_point(rows[0]["points"], attack, paper)
        if point:
            met = abs(point[0] - paper[0]) <= _CLOSE and abs(point[1] - paper[1]) <= _CLOSE
            found.setdefault((attack, f"{candidate}, stopped at the nearest moment"), {})[number] = met
    return found


def _judgements(rows: Sequence[Row], attack: str) -> dict[str, float]:
    """Mean accuracy in percent under the table's own attack and under the others."""
    means = {"its own attack": 100 * statistics.fmean(row["fgsm" if attack == "fgsm" else "pgd40"] for row in rows)}
    if attack == "fgsm":
        means["pgd-40"] = 100 * statistics.fmean(row["pgd40"] for row in rows)
    for judge in JUDGES:
        values = [row["judged"][judge] for row in rows if judge in row.get("judged", {})]
        if values:
            means[judge] = 100 * statistics.fmean(values)
    return means


def explanations(record: Record) -> list[str]:
    """Which candidates come within 5 points of both printed numbers, at how many of the scales."""
    lines = []
    for attack, table in (("fgsm", "III"), ("pgd", "II")):
        tried = {way: scales for (kind, way), scales in explained(record).items() if kind == attack}
        if not tried:
            continue
        best = max(sum(met for number, met in scales.items() if number < 3) for scales in tried.values())
        ways = [way for way, s in tried.items() if best and sum(m for n, m in s.items() if n < 3) == best]
        asked = max(sum(number < 3 for number in scales) for scales in tried.values())
        changes = len({way.split(",")[0] for way in tried})
        large = any(3 in scales for scales in tried.values())
        nearest = f"; the most, {best}, by {listed(ways)}" if ways else ""
        lines.append(
            f"Table {table}, {asked} small scales: of {len(tried)} ways ({changes} trainings, judged in several ways) "
            f"{sum(all(s.values()) for s in tried.values())} come within {_CLOSE:.0f} points of clean and attacked "
            f"accuracy at every scale{' and leave scale 3 robust' if large else ' (scale 3 was not tried)'}{nearest}."
        )
    return lines
