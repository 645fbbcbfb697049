"""What else may choose the weights: the paper's trials of its criteria, and criteria of others, at one sparsity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.systems.control.studies import agents
from fewer.systems.control.studies.agents import ALGORITHMS, group, spelled
from fewer.systems.control.studies.training.cohorts import Row
from fewer.systems.control.studies.training.recipes import Recipe
from fewer.systems.control.studies.training.scales import HEADLINE, SEEDS, environments, wanted, where
from fewer.systems.control.task.statistics import statistics

__all__ = ["rivals"]


def rivals(order: Order) -> Result:
    """Only recipes with all their seeds are shown."""
    place, rows = where(order), agents.found(order)
    shown, seeds = wanted(order.study, order.scale), len(SEEDS[order.scale])
    whole = [
        (environment, recipe, own)
        for environment in environments(order.scale)
        for recipe in shown
        if len(own := group(rows, environment, recipe)) >= seeds
    ]
    table = [
        _line(environment, algorithm, recipe, own, _scores(group(rows, environment, ("dense", 0.0)), algorithm))
        for algorithm in ALGORITHMS
        for environment, recipe, own in whole
    ]
    removed = f"{100 * HEADLINE[order.scale]:g} %"
    return Result(
        title=f"Who chooses the weights: {removed} removed by the paper's criteria, by what it tried of them and by "
        f"others; {agents.setting(order)}",
        columns=["algorithm", "environment", "weights chosen by", "removed %", "score", "95 % interval",
                 "middle half's mean", "% of dense"],
        rows=table,
        notes=[
            *agents.notes([row for *_, own in whole for row in own], order, place),
            "`-batches` scores on 50 batches of 100 samples, `-rounds` prunes in 20 iterations of 10 batches: what the "
            "paper tried (it does not say how many). `set`, `rigl` and `snip-rigl` drop and grow weights during the "
            "first three quarters of the training at constant sparsity; `gradual` starts dense.",
        ],
        details={**agents.kept(rows), "wanted": shown, "seeds": seeds},
        commands=agents.commands(order),
        machines=agents.machines(rows),
    )  # fmt: skip


def _scores(own: Sequence[Row], algorithm: str) -> list[float]:
    return [row[ALGORITHMS[algorithm]] for row in own if ALGORITHMS[algorithm] in row]


def _line(environment: str, algorithm: str, recipe: Recipe, own: Sequence[Row], dense: Sequence[float]) -> list[Any]:
    start, scores = [algorithm, spelled(environment), recipe[0], f"{100 * recipe[1]:g}"], _scores(own, algorithm)
    if not scores:
        return [*start, "masks refused", "", "", ""]
    found = statistics(scores)
    share = f"{100 * found['mean'] * len(dense) / sum(dense):.0f}" if dense and sum(dense) > 0 else ""
    interval = f"{found['low']:.1f} to {found['high']:.1f}"
    return [*start, f"{found['mean']:.1f}", interval, f"{found['interquartile_mean']:.1f}", share]
