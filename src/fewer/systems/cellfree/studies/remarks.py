"""Remarks on the cell-free studies."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from fewer.studies.remarks import Record
from fewer.studies.words import between, listed

__all__ = ["cached", "figure", "phones", "readings", "scaling", "selectors", "statistics"]

_FAR = 2.0  # spreads over deployments
_PAPER = {"precision": 0.83, "recall": 0.68}  # at 100 access points and 10 candidates


def statistics(record: Record) -> list[str]:
    """Which of the paper's figures are beyond the spread of deployments."""
    said, given = [], [row for row in record["rows"] if row[3] != ""]
    for column, name in enumerate(record["columns"][4:], start=4):
        apart = [(row, *(float(part) for part in row[column].split(" ± "))) for row in given]
        far = [(row, here) for row, here, spread in apart if abs(here - row[3]) > _FAR * spread]
        named = (f"{row[2]} at {row[0]} access points and {row[1]} candidates ({here:.3f})" for row, here in far)
        said.append(
            f"{name}: {len(far)} of {len(given)} are more than {_FAR:g} spreads from the paper: {listed(named)}."
        )
    return said


def figure(record: Record) -> list[str]:
    """How each reading's means at the paper's own numbers lie to them, and what more candidates do."""
    said = []
    for column, name in enumerate(record["columns"][4:], start=4):
        known = [row for row in record["rows"] if row[3]]
        told = (f"{row[2]} {_first(row[column]):.3f} (paper {row[3]}) at {row[0]} access points" for row in known)
        by = {(row[0], row[1], row[2]): _first(row[column]) for row in record["rows"] if "other" not in row[2]}
        moves = (
            f"{metric} {by[size, 20, metric] - by[size, 10, metric]:+.3f} at {size}"
            for size, candidates, metric in by if candidates == 10 and (size, 20, metric) in by
        )  # fmt: skip
        said.append(f"{name}: {listed(told)}. From 10 to 20 candidates: {listed(moves)} access points.")
    return said


def readings(record: Record) -> list[str]:
    """The one closest to the paper's precision and recall, and which lie on which side."""
    away = {
        name: {metric: mean(one[metric] for one in each) - paper for metric, paper in _PAPER.items()}
        for name, each in record["details"].items()
    }
    nearest = min(away, key=lambda name: sum(abs(value) for value in away[name].values()))
    told = listed(f"{metric} {_PAPER[metric] + value:.3f}" for metric, value in away[nearest].items())
    below = listed((f"`{name}`" for name, own in away.items() if own["recall"] < 0), none="none")
    return [
        f"Closest to the paper's precision and recall together: `{nearest}`, {told}.",
        f"Below the paper's recall: {below}.",
    ]


def phones(record: Record) -> list[str]:
    """Whether a phone's answer depends on the others, and what a phone costs among more of them."""
    rows = record["details"]
    most = max(one["difference"] for each in rows.values() for one in each)
    cost = {name: mean(one["kept_us"] for one in each) for name, each in rows.items() if name.isdecimal()}
    first, last = min(cost, key=int), max(cost, key=int)
    return [
        f"A phone's probabilities change by at most {most:.0e} with the number of phones beside it; with cached access "
        f"points a phone costs {cost[first]:.0f} us alone and {cost[last]:.1f} us among {last}."
    ]


def cached(record: Record) -> list[str]:
    """How many times faster, and how costs grow with access points."""
    found: Mapping[str, Mapping[str, float]] = record["details"]
    alone, many = ([one[f"whole {count}"] / one[f"cached {count}"] for one in found.values()] for count in (1, 100))
    first, last = next(iter(found)), list(found)[-1]
    grown = {name: found[last][f"{name} 100"] / found[first][f"{name} 100"] for name in ("cached", "local", "nearest")}
    return [
        f"Cached embeddings answer {between(alone, '.0f')} times as fast one phone at a time, {between(many)} times in "
        "batches of 100.",
        f"From {first} to {last} access points the cost of a phone in batches of 100 grows {grown['cached']:.1f}-fold "
        f"for the paper's network with cached embeddings, {grown['local']:.1f}-fold for the local one, "
        f"{grown['nearest']:.1f}-fold for the nearest three; the paper's weights grow "
        f"{found[last]['weights'] / found[first]['weights']:.0f}-fold.",
    ]


def selectors(record: Record) -> list[str]:
    """The order of the selectors in every setting, and what the distilled one costs."""
    said, costs = [], record["details"].get("costs", {})
    for name, own in record["details"].items():
        if name == "costs":
            continue
        score = {one: mean(row["other_average_precision"] for row in each) for one, each in own.items()}
        ranked = sorted((one for one in score if one != "ceiling"), key=lambda one: -score[one])
        said.append(f"{name} dB: {' > '.join(f'{one} {score[one]:.3f}' for one in ranked)}.")
        if "distilled" in score:
            said[-1] += f" distilled lies {score['kriging'] - score['distilled']:.3f} below kriging."
    spent = [{name: one["batch_us"] for name, one in own.items()} for own in costs.values()]
    if spent:
        slower = between(own["distilled"] / own["local"] for own in spent)
        faster = between((own["kriging"] / own["distilled"] for own in spent), ".0f")
        said.append(f"distilled costs {slower} times what local costs, kriging {faster} times what distilled costs.")
    return said


def scaling(record: Record) -> list[str]:
    """How weights and speed grow with the network."""
    first, last = record["rows"][0], record["rows"][-1]
    speeds = [float(row[2].replace(",", "")) for row in (first, last)]
    return [
        f"From {first[0]:,} to {last[0]:,} access points the weights grow {last[1] / first[1]:.0f}-fold, and phones a "
        f"second {speeds[1] / speeds[0]:.2f}-fold."
    ]


def _first(cell: Any) -> float:
    return float(str(cell).split(" ")[0])
