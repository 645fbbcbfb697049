"""The paper's future work: single-shot pruning where the logs are not an expert's.

With `--data` each kind is a file of D4RL's: hopper_expert-v2.hdf5, hopper_medium-v2.hdf5 and so on.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from fewer.core.files.atomic import write_atomically
from fewer.core.settings import from_text
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces
from fewer.studies.plan import Planned
from fewer.studies.study import Result
from fewer.systems.control.studies import agents
from fewer.systems.control.studies.agents import ALGORITHMS, group, spelled
from fewer.systems.control.studies.training import scales
from fewer.systems.control.studies.training.catalogue import Choices, changed, pieces_at
from fewer.systems.control.studies.training.cohorts import Row, read_rows, train_agents
from fewer.systems.control.studies.training.logs import KINDS
from fewer.systems.control.studies.training.plan import planned_at
from fewer.systems.control.studies.training.recipes import Recipe, recipe_of
from fewer.systems.control.studies.training.scales import HEADLINE, SEEDS, Place, environments, where
from fewer.systems.control.task.logs.checks import summary
from fewer.systems.control.task.logs.source import transitions
from fewer.systems.control.task.statistics import statistics
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS

__all__ = ["about", "catalogue", "data", "planned"]

_D4RL = ("expert", "medium-expert", "medium-replay", "medium")


def _recipes(scale: str) -> list[Recipe]:
    return [("dense", 0.0), ("snip", HEADLINE[scale]), ("grasp", HEADLINE[scale])]


def _places(order: Order) -> dict[str, Place]:
    """Of each kind of logs; agents of the expert's are those of the figures."""
    place = where(order)
    kinds = _D4RL if order.data else tuple(KINDS)
    return {
        kind: dataclasses.replace(place, kind=kind, out=place.out if kind == "expert" else place.out / kind)
        for kind in kinds
    }


def about(order: Order) -> dict[str, Any]:
    """Every setting that the order stands for."""
    recipes = [f"{name}:{sparsity:g}" for name, sparsity in _recipes(order.scale)]
    return {**scales.about(order), "recipes": recipes, "kinds": list(_places(order))}


def planned(order: Order) -> list[Planned]:
    """The trainings of every kind."""
    return [
        one
        for kind, place in _places(order).items()
        for one in planned_at(place, _recipes(order.scale), order.scale, f"{kind} logs, ")
    ]


def catalogue(order: Order) -> Pieces:
    """For each kind what the figures have: environments, or agents."""
    chosen = from_text(Choices, order.words)
    recipes = [recipe_of(word) for word in chosen.recipes] or _recipes(order.scale)
    every: dict[str, Piece] = {}
    for kind, place in _places(order).items():
        every |= pieces_at(changed(place, chosen), recipes, chosen, chosen.seeds or SEEDS[order.scale], f"{kind}-")
    return Pieces(every, Choices)


def data(order: Order) -> Result:
    """One row for each kind of logs, environment, algorithm; dense beside pruned."""
    rows, seeds, recipes = [], len(SEEDS[order.scale]), _recipes(order.scale)
    table: list[list[Any]] = []
    for kind, place in _places(order).items():
        own = _found(order, place, recipes)
        rows += [{**row, "kind": kind} for row in own]
        for environment in environments(order.scale):
            groups = [group(own, environment, recipe) for recipe in recipes]
            if min(map(len, groups)) >= seeds:
                score = _score(place, environment)
                table += [
                    [kind, spelled(environment), score, algorithm, *(_cell(one, key) for one in groups)]
                    for algorithm, key in ALGORITHMS.items()
                ]
    removed = f"{100 * HEADLINE[order.scale]:g} %"
    return Result(
        title=f"Logs that are not an expert's: dense policies and policies with {removed} of the weights removed; "
        f"{agents.setting(order).replace('own experts', 'generated logs of four kinds')}",
        columns=["logs", "environment", "score of the logs", "algorithm", "dense", f"SNIP {removed}",
                 f"GraSP {removed}"],
        rows=table,
        notes=[
            *agents.notes(rows, order, where(order)),
            *([] if order.data else [f"{kind}: {line}." for kind, line in KINDS.items()]),
        ],
        details=agents.kept(rows),
        commands=agents.commands(order),
        machines=agents.machines(rows),
    )  # fmt: skip


def _found(order: Order, place: Place, recipes: list[Recipe]) -> list[Row]:
    if place.alone:
        return [row for row in read_rows(place) if (row["recipe"], row["sparsity"]) in recipes]
    worlds = environments(order.scale)
    return [row for one in worlds for row in train_agents(place, one, recipes, SEEDS[order.scale])]


def _score(place: Place, environment: str) -> str:
    """The mean return of the logs themselves, kept once it was computed."""
    file = place.out / "logs" / f"{environment}-{place.kind}.json"
    if not file.exists():
        world = ENVIRONMENTS[environment]
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(summary(transitions(place.source(environment), world), world)).encode())
    return f"{json.loads(file.read_text())['score']:.1f}"


def _cell(own: list[Row], key: str) -> str:
    scores = [row[key] for row in own if key in row]
    if not scores:
        return "masks refused"
    found = statistics(scores)
    return f"{found['mean']:.1f} ({found['low']:.1f} to {found['high']:.1f})"
