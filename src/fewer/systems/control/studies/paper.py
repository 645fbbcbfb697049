"""The control paper's Figures 1 and 2: score against sparsity for BCQ and BC, and what else may choose the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewer.core.errors import UserError
from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.control.studies.cohorts import ENVIRONMENTS, Place, Row, read_rows, train_agents, where
from fewer.systems.control.task.statistics import statistics

__all__ = ["SEEDS", "fig1", "fig2", "wanted"]

CRITERIA = {"control/fig1": "snip", "control/fig2": "grasp"}
ALGORITHMS = {"BCQ": "score", "BC": "bc_score"}
SPARSITIES = {"quick": (0.5, 0.8, 0.9), "full": (0.5, 0.9, 0.95, 0.98, 0.99)}
SEEDS = {"quick": (0, 1), "full": (0, 1, 2, 3, 4)}
HEADLINE = {"quick": 0.9, "full": 0.95}  # small networks do not stand the paper's
# at the headline sparsity, in the same plot
RIVALS = ("random", "erk", "magnitude", "synflow", "set", "rigl", "gradual")
TRIED = {"snip": ("snip-batches", "snip-rounds", "snip-erk", "snip-rigl"), "grasp": ("grasp-batches",)}


def fig1(order: Order) -> Result:
    """SNIP."""
    return _figure(order, 1, "SNIP")


def fig2(order: Order) -> Result:
    """GraSP."""
    return _figure(order, 2, "GraSP")


def wanted(study: str, scale: str) -> list[tuple[str, float]]:
    """Recipes and sparsities that the figure shows."""
    criterion = CRITERIA[study]
    found = [("dense", 0.0)] + [(criterion, sparsity) for sparsity in SPARSITIES[scale]]
    return found + [(rival, HEADLINE[scale]) for rival in (*RIVALS, *TRIED[criterion])]


def _figure(order: Order, number: int, spelled: str) -> Result:
    scale = order.scale
    study = f"control/fig{number}"
    place, shown, criterion = where(order), wanted(study, scale), CRITERIA[study]
    rows = [row for row in _found(place, study, scale) if (row["recipe"], row["sparsity"]) in shown]
    table = [line for environment in ENVIRONMENTS for line in _lines(rows, environment)]
    return Result(
        title=f"Figure {number}: score against sparsity, {spelled}",
        columns=["environment", "algorithm", "weights chosen by", "removed %", "seeds", "score", "95 % interval",
                 "middle half's mean", "% of dense"],
        rows=table,
        notes=_notes(rows, place, scale),
        figures={f"control-fig{number}.png": _draw(rows, criterion)},
        details={"agents": [{key: value for key, value in row.items() if key != "kept"} for row in rows]},
    )  # fmt: skip


def _found(place: Place, study: str, scale: str) -> list[Row]:
    if scale == "full" and place.device == "cpu":
        more = f"`fewer reproduce {study} --scale full --pieces ENVIRONMENT` trains more"
        place.log(f"no CUDA GPU: only finished agents are read; {more}")
        if not (found := read_rows(place)):
            given = f"no CUDA GPU and no finished agents in {place.out / 'agents'}"
            raise UserError(given, "one of both", f"{more}; or --scale quick")
        return found
    environments = ENVIRONMENTS if scale == "full" else ENVIRONMENTS[:1]
    return [row for one in environments for row in train_agents(place, one, wanted(study, scale), SEEDS[scale])]


def _lines(rows: Sequence[Row], environment: str) -> list[list[Any]]:
    """One line for each algorithm, recipe and sparsity; refused masks are said."""
    found: list[list[Any]] = []
    own = [row for row in rows if row["environment"] == environment]
    for algorithm, figure in ALGORITHMS.items():
        dense = [row[figure] for row in own if row["recipe"] == "dense"]
        for recipe, sparsity in dict.fromkeys((row["recipe"], row["sparsity"]) for row in own):
            group = [row for row in own if (row["recipe"], row["sparsity"]) == (recipe, sparsity)]
            scores = [row[figure] for row in group if figure in row]
            start = [environment, algorithm, recipe, f"{100 * sparsity:g}", len(scores)]
            if not scores:
                found.append([*start, "mask refused", "", "", ""])
                continue
            about = statistics(scores)
            share = f"{100 * about['mean'] * len(dense) / sum(dense):.0f}" if dense and sum(dense) > 0 else ""
            interval = f"{about['low']:.1f} to {about['high']:.1f}" if len(scores) > 1 else "one seed"
            found.append([*start, f"{about['mean']:.1f}", interval, f"{about['interquartile_mean']:.1f}", share])
    return found


def _notes(rows: Sequence[Row], place: Place, scale: str) -> list[str]:
    steps = sorted({row["steps"] for row in rows})
    episodes = sorted({row["episodes"] for row in rows})
    notes = [
        f"After {' and '.join(map(str, steps))} updates of batch 100 (the paper: 1,000,000), last weights, "
        f"{' and '.join(map(str, episodes))} episodes an agent; normalised scores, the environments' v5, "
        "learning from our embedded experts.",
        "BC is the decoder, at latent variable 0, of the same agents. Biases are never removed. `set`, `rigl` and "
        "`snip-rigl` drop and grow weights during the first three quarters of the training at constant sparsity; "
        "`gradual` starts dense. At full scale the learning rate falls to zero over the second half. The paper prints "
        "no numbers beside its plots.",
    ]
    if scale == "quick":
        notes.append(
            f"Quick: Hopper alone, networks of {place.settings.hidden}, episodes cut at {place.settings.horizon} "
            "steps: it shows that everything runs, not who wins."
        )
    return notes


def _draw(rows: Sequence[Row], criterion: str) -> bytes:
    present = [name for name in ENVIRONMENTS if any(row["environment"] == name for row in rows)]
    figure, axes = pyplot().subplots(
        2, len(present), figsize=(4.5 * len(present), 7), layout="constrained", squeeze=False, sharex=True
    )
    for column, environment in enumerate(present):
        for axis, (algorithm, key) in zip(axes[:, column], ALGORITHMS.items()):
            own = [row for row in rows if row["environment"] == environment and key in row]
            _curve(axis, own, key, criterion)
            axis.set(title=f"{algorithm}, {environment}", ylabel="normalised score")
            axis.grid(alpha=0.3)
        axes[1, column].set(xlabel="weights removed, %")
    axes[0, 0].legend(fontsize=7)
    return png(figure)


def _curve(axis: Any, rows: Sequence[Row], key: str, criterion: str) -> None:
    """The criterion's curve over the weights that remain, a mark for each other recipe; a recipe's mark is its own."""
    points: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        points.setdefault(row["recipe"], {}).setdefault(100 * (1 - row["sparsity"]), []).append(row[key])
    main = {**points.get("dense", {}), **points.get(criterion, {})}
    ordered = sorted(main)
    about = [statistics(main[kept]) for kept in ordered]
    axis.plot(ordered, [found["mean"] for found in about], "o-", color="#b03030", label=criterion)
    axis.fill_between(
        ordered, [found["low"] for found in about], [found["high"] for found in about], color="#b03030", alpha=0.2
    )
    others = (*RIVALS, *TRIED[criterion])
    for place, recipe in enumerate(others):
        for kept, scores in points.get(recipe, {}).items():
            shifted = kept * 1.05 ** (place - len(others) / 2)
            mark = {"marker": "x*P^vsdDh<>"[place], "color": f"C{place % 10}", "linestyle": "none"}
            axis.plot([shifted], [statistics(scores)["mean"]], markersize=6, label=recipe, **mark)
    axis.set_xscale("log")
    axis.set_xlim(130, 0.8)
    axis.set_xticks(ordered, [f"{100 - kept:g}" for kept in ordered])
    axis.minorticks_off()
