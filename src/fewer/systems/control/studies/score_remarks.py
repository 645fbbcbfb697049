"""Remarks on the scores of agents: what is told apart from dense by a permutation test over seeds, what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fewer.studies.permutation import permutation_p
from fewer.studies.remarks import Record
from fewer.studies.words import listed
from fewer.systems.control.studies.agents import ALGORITHMS, spelled

__all__ = ["CHANCE", "data", "rivals", "scores_of", "sparsities"]

CHANCE = 0.05

Groups = dict[str, tuple[list[float], list[float]]]  # whose scores; pruned, dense


def scores_of(agents: Iterable[Mapping[str, Any]], key: str, **wanted: Any) -> list[float]:
    """Scores of the agents with these properties."""
    return [row[key] for row in agents if key in row and all(row.get(name) == value for name, value in wanted.items())]


def _apart(groups: Groups, what: str) -> str:
    """Who is lower, higher, or not told apart."""
    told: dict[str, list[str]] = {"lower than": [], "higher than": [], "not told apart from": []}
    for whose, (pruned, dense) in groups.items():
        chance = permutation_p(pruned, dense)
        mean, reference = sum(pruned) / len(pruned), sum(dense) / len(dense)
        kind = "not told apart from" if chance >= CHANCE else "lower than" if mean < reference else "higher than"
        told[kind].append(f"{whose} ({mean:.1f} against {reference:.1f}, p {chance:.3f})")
    parts = [f"{kind} dense: {listed(names)}" for kind, names in told.items() if names]
    return f"{what}, by a permutation test over seeds at p < {CHANCE:g}, {'; '.join(parts)}."


def sparsities(record: Record) -> list[str]:
    """Of Figures 1 and 2: what the headline sparsity costs."""
    agents, removed = record["details"]["agents"], record["columns"][-2].partition(" ")[0]
    groups: Groups = {}
    for environment in dict.fromkeys(row["environment"] for row in agents):
        for algorithm, key in ALGORITHMS.items():
            both = [
                scores_of(agents, key, environment=environment, sparsity=share) for share in (float(removed) / 100, 0.0)
            ]
            if min(map(len, both)) > 1:
                groups[f"{algorithm} on {spelled(environment)}"] = both[0], both[1]
    lines = [_apart(groups, f"With {removed} % removed")] if groups else []
    return lines + _missing(record["details"])


def _missing(details: Record) -> list[str]:
    """Which recipes lack seeds, and whose masks were refused for all of them."""
    agents = details["agents"]
    lacking: dict[str, list[str]] = {}
    refused: dict[str, list[str]] = {}
    places = dict.fromkeys(row["environment"] for row in agents)
    for recipe, sparsity in details["wanted"]:
        name = recipe if recipe == "dense" else f"{recipe} {100 * sparsity:g} %"
        for environment in places:
            own = [
                row
                for row in agents
                if (row["environment"], row["recipe"], row["sparsity"]) == (environment, recipe, sparsity)
            ]
            if len(own) < details["seeds"]:
                lacking.setdefault(name, []).append(spelled(environment))
            elif all("refused" in row for row in own):
                refused.setdefault(name, []).append(spelled(environment))
    lines = []
    for said, found in (
        ("Fewer than all seeds trained, and so not shown", lacking),
        ("Masks refused for all seeds", refused),
    ):
        if found:
            lines.append(f"{said}: {'; '.join(f'{name} on {listed(where)}' for name, where in found.items())}.")
    return lines


def rivals(record: Record) -> list[str]:
    """What is told apart from SNIP's and GraSP's own single batch, and who is left out."""
    rows, agents = record["rows"], record["details"]["agents"]
    lines = []
    for criterion in ("snip", "grasp"):
        groups: Groups = {}
        for algorithm, where, name, *_ in rows:
            if name.startswith(f"{criterion}-") and name.removeprefix(f"{criterion}-") in ("batches", "rounds"):
                key, environment = ALGORITHMS[algorithm], where.lower()
                groups[f"{name} for {algorithm} on {where}"] = (
                    scores_of(agents, key, environment=environment, recipe=name),
                    scores_of(agents, key, environment=environment, recipe=criterion),
                )
        if groups := {name: both for name, both in groups.items() if all(both)}:
            lines.append(_apart(groups, f"More batches or iterations of {criterion}").replace("dense", "one batch"))
    return lines + _missing(record["details"])


def data(record: Record) -> list[str]:
    """Which logs a pruned policy stands worse than a dense one."""
    agents = record["details"]["agents"]
    groups: Groups = {}
    for kind, environment, recipe in _kinds(agents):
        for algorithm, key in ALGORITHMS.items():
            own, dense = (
                scores_of(agents, key, kind=kind, environment=environment, recipe=name) for name in (recipe, "dense")
            )
            if min(len(own), len(dense)) > 1:
                groups[f"{recipe} for {algorithm} on {spelled(environment)}, {kind} logs"] = own, dense
    return [_apart(groups, "Pruned policies")] if groups else []


def _kinds(agents: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    found = dict.fromkeys((row["kind"], row["environment"], row["recipe"]) for row in agents)
    return [each for each in found if each[2] != "dense"]
