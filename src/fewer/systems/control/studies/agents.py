"""The agents of an order: trained here, or found where they were trained; and how they are told of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.core.errors import UserError
from fewer.studies.order import Order
from fewer.studies.words import listed
from fewer.systems.control.studies.training.cohorts import Row, read_rows, train_agents
from fewer.systems.control.studies.training.recipes import Recipe
from fewer.systems.control.studies.training.scales import SEEDS, Place, environments, wanted, where
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS as WORLDS

__all__ = ["ALGORITHMS", "LATENT", "commands", "found", "group", "kept", "machines", "notes", "setting", "spelled"]

ALGORITHMS = {"BCQ": "score", "BC": "bc_score"}
LATENT = {False: "at latent variable 0", True: "at a drawn latent variable"}


def found(order: Order, place: Place | None = None) -> list[Row]:
    """Every agent that the study shows; without a GPU only finished ones: a CPU takes hours for a dense one."""
    place, shown = place or where(order), wanted(order.study, order.scale)
    if place.alone:
        more = f"`fewer reproduce {order.study} --scale {order.scale} --pieces all` trains more"
        place.log(f"no CUDA GPU: only finished agents are read; {more}")
        rows = [row for row in read_rows(place) if (row["recipe"], row["sparsity"]) in shown]
        if not rows:
            given = f"no CUDA GPU and no finished agents in {place.out / 'agents'}"
            raise UserError(given, "one of both", f"{more}; or --scale quick")
        return rows
    seeds = SEEDS[order.scale]
    return [row for one in environments(order.scale) for row in train_agents(place, one, shown, seeds)]


def group(rows: Sequence[Row], environment: str, recipe: Recipe) -> list[Row]:
    """All seeds of one recipe, those with refused masks included."""
    return [row for row in rows if (row["environment"], row["recipe"], row["sparsity"]) == (environment, *recipe)]


def kept(rows: Sequence[Row]) -> dict[str, Any]:
    """Every single number of the agents but the weights of their layers."""
    return {"agents": [{key: value for key, value in row.items() if key != "kept"} for row in rows]}


def spelled(environment: str) -> str:
    """HalfCheetah, not halfcheetah."""
    return WORLDS[environment].gymnasium.partition("-")[0]


def setting(order: Order) -> str:
    """The end of a title: updates, seeds, data, versions of the environments."""
    place, seeds = where(order), len(SEEDS[order.scale])
    data = "the user's expert logs" if place.folder else "own experts (the paper: D4RL's)"
    updates = f"{place.steps:,} updates" + ("" if order.scale == "paper" else " (the paper: 1,000,000)")
    worlds = ", ".join(spelled(one) for one in environments(order.scale))
    return f"{worlds}, v5 (the paper: v2); {updates}, {data}, {seeds} seeds"


def commands(order: Order) -> list[str]:
    """From nothing: the agents, then the table."""
    if order.scale == "quick":
        return [order.command()]
    head, _, tail = order.command().partition(" --out")
    return [f"{head} --pieces all --out{tail}", order.command()]


def machines(rows: Sequence[Row]) -> list[str]:
    """What the agents were trained on."""
    return list(dict.fromkeys(str(row["hardware"]) for row in rows if "hardware" in row))


def notes(rows: Sequence[Row], order: Order, place: Place) -> list[str]:
    """How the agents were made and judged."""
    about = place.settings
    steps = list(dict.fromkeys(str(row["steps"]) for row in rows if "steps" in row))
    seen = "normalised observations" if about.normalise else "raw observations"
    twin = "a second critic that is a copy of the first" if about.twin == "copy" else "twin critics of their own"
    falling = place.optimizer.decay_from
    rate = "constant" if falling == 1 else f"falling to zero over the last {100 * (1 - falling):.0f} % of the updates"
    data = ", ".join(dict.fromkeys(row["data"] for row in rows if "data" in row))
    lines = [
        f"{listed(steps)} updates of batch {place.batch} by Adam at {place.optimizer.lr:g}, {rate}; {seen}; {twin}; "
        f"last weights, {about.episodes} episodes an agent from fixed starts; scores by D4RL's references, of "
        f"the environments' v2. Logs: {data}.",
        f"Trained on {listed(machines(rows), 'what the agents do not tell')}; a GPU's products are in TF32.",
        f"BC is the decoder, {LATENT[about.sampled]}, of the same agents. Biases are never removed. Intervals are 95 % "
        "bootstrap intervals of the mean over seeds. The paper prints plots without numbers.",
    ]
    before = dict.fromkeys(row["before"] for row in rows if "before" in row)
    for text in before:
        whose = dict.fromkeys(_named(row) for row in rows if row.get("before") == text)
        lines.append(f"{text}: {listed(whose)}.")
    if order.scale == "quick":
        lines.append(
            f"Quick: Hopper alone, networks of {about.hidden}, episodes cut at {about.horizon} steps: it shows that "
            "everything runs, not who wins."
        )
    return lines


def _named(row: Row) -> str:
    removed = "" if row["recipe"] == "dense" else f" {100 * row['sparsity']:g} %"
    return f"{spelled(row['environment'])} {row['recipe']}{removed}"
