"""The control paper's Figures 1 and 2: learning curves and final scores of BCQ and BC against sparsity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.control.studies import agents
from fewer.systems.control.studies.agents import ALGORITHMS, group, spelled
from fewer.systems.control.studies.training.cohorts import Row
from fewer.systems.control.studies.training.recipes import Recipe
from fewer.systems.control.studies.training.scales import HEADLINE, SEEDS, environments, wanted, where
from fewer.systems.control.task.statistics import statistics

__all__ = ["fig1", "fig2"]

EXCEPTION = ("hopper", "BCQ")  # Section 4.1: consistent at 95 % in all experiments but this
COLOURS = ("#303030", "#b03030", "#4878a8", "#3a8f4d", "#a06ab4", "#d08030", "#808000", "#00808f")


def fig1(order: Order) -> Result:
    """SNIP."""
    return _figure(order, 1, "SNIP")


def fig2(order: Order) -> Result:
    """GraSP."""
    return _figure(order, 2, "GraSP")


def _figure(order: Order, number: int, criterion: str) -> Result:
    place, seeds = where(order), len(SEEDS[order.scale])
    rows, headline = agents.found(order, place), HEADLINE[order.scale]
    trained = {(row["recipe"], row["sparsity"]) for row in rows}
    shown = [recipe for recipe in wanted(order.study, order.scale) if recipe in trained]
    table = [
        _line(rows, environment, algorithm, shown, seeds, headline)
        for environment in environments(order.scale)
        for algorithm in ALGORITHMS
    ]
    sparsities = [f"{100 * sparsity:g} %" for _, sparsity in shown]
    return Result(
        title=f"Figure {number}: score against weights removed by {criterion} before training; {agents.setting(order)}",
        columns=["environment", "algorithm", *sparsities, f"{100 * headline:g} % in % of dense", "the paper at 95 %"],
        rows=table,
        notes=agents.notes(rows, order, place),
        figures={f"control-fig{number}.png": _draw(rows, shown, seeds)},
        details={**agents.kept(rows), "wanted": wanted(order.study, order.scale), "seeds": seeds},
        commands=agents.commands(order),
        machines=agents.machines(rows),
    )


def _line(
    rows: Sequence[Row], environment: str, algorithm: str, shown: Sequence[Recipe], seeds: int, headline: float
) -> list[Any]:
    """One row: a cell for each sparsity whose seeds are all there."""
    key, cells, means = ALGORITHMS[algorithm], [], {}
    for recipe in shown:
        own = group(rows, environment, recipe)
        scores = [row[key] for row in own if key in row]
        if len(own) < seeds:
            cells.append("not trained")
            continue
        refused = f", {seeds - len(scores)} masks refused" if len(scores) < seeds else ""
        if not scores:
            cells.append("masks refused")
            continue
        found = statistics(scores)
        means[recipe[1]] = found["mean"]
        cells.append(f"{found['mean']:.1f} ({found['low']:.1f} to {found['high']:.1f}{refused})")
    whole = means.get(0.0, 0.0) > 0 and headline in means
    share = f"{100 * means[headline] / means[0.0]:.0f}" if whole else ""
    paper = "below dense" if (environment, algorithm) == EXCEPTION else "as dense"
    return [spelled(environment), algorithm, *cells, share, paper]


def _draw(rows: Sequence[Row], shown: Sequence[Recipe], seeds: int) -> bytes:
    """Curves above, final scores below, a column for each environment."""
    present = list(dict.fromkeys(row["environment"] for row in rows))
    parts = [(part, *pair) for part in (_curves, _finals) for pair in ALGORITHMS.items()]
    figure, axes = pyplot().subplots(
        4, len(present), figsize=(4.5 * len(present), 12), layout="constrained", squeeze=False
    )
    for column, environment in enumerate(present):
        for axis, (part, algorithm, key) in zip(axes[:, column], parts):
            whole = {recipe: own for recipe in shown if len(own := group(rows, environment, recipe)) >= seeds}
            part(axis, whole, key)
            axis.set(title=f"{algorithm}, {spelled(environment)}", ylabel="normalised score")
            axis.grid(alpha=0.3)
    for row in axes[::2]:
        if row[0].get_legend_handles_labels()[0]:
            row[0].legend(fontsize=7)
    return png(figure)


def _curves(axis: Any, whole: dict[Recipe, list[Row]], key: str) -> None:
    """Mean over seeds, and from the lowest to the highest of them: what the paper calls a 100 % interval."""
    curved = {recipe: [row["curve"] for row in own if "curve" in row] for recipe, own in whole.items()}
    for colour, (recipe, found) in zip(COLOURS, [item for item in curved.items() if item[1]]):
        updates = found[0]["updates"]
        columns = list(zip(*(curve[key] for curve in found)))
        axis.plot(
            updates, [sum(column) / len(column) for column in columns], color=colour, label=f"{100 * recipe[1]:g} %"
        )
        axis.fill_between(updates, [min(column) for column in columns], [max(column) for column in columns],
                          color=colour, alpha=0.15)  # fmt: skip
    axis.set(xlabel="updates")


def _finals(axis: Any, whole: dict[Recipe, list[Row]], key: str) -> None:
    """Final scores over the weights that remain."""
    points = {
        100 * (1 - recipe[1]): scores for recipe, own in whole.items() if (scores := [r[key] for r in own if key in r])
    }
    if not points:
        return
    ordered = sorted(points)
    about = [statistics(points[remaining]) for remaining in ordered]
    axis.plot(ordered, [found["mean"] for found in about], "o-", color=COLOURS[1])
    axis.fill_between(ordered, [found["low"] for found in about], [found["high"] for found in about],
                      color=COLOURS[1], alpha=0.2)  # fmt: skip
    axis.set_xscale("log")
    axis.set_xlim(130, 0.8)
    axis.set_xticks(ordered, [f"{100 - remaining:g}" for remaining in ordered])
    axis.minorticks_off()
    axis.set(xlabel="weights removed, %")
