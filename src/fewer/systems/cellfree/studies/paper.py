"""The cell-free paper: its statistics and both figures, with its numbers beside ours."""

from __future__ import annotations

from typing import Any

from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.systems.cellfree.studies.worlds import SEEDS, mean_and_spread, paper_world, sage_figures, spelled
from fewer.systems.cellfree.task.statistics import network_statistics

__all__ = ["fig2", "fig3", "statistics"]

STEPS = {"quick": 1000, "full": 5000}  # of 100 phones: 10 and 50 epochs of the paper's 100 graphs
CELLS = ((100, 10), (100, 20), (50, 10), (50, 20))  # access points, candidates
PAPER = {  # the text's numbers; the rest of the figures has none
    ("precision", 100, 10): "0.83",
    ("recall", 100, 10): "0.68",
    ("auc", 100, 10): "> 0.9",
    ("auc", 50, 10): "> 0.9",
    ("average_precision", 100, 10): "> 0.8",
    ("average_precision", 50, 10): "> 0.8",
}
IGNORED = {(100, 10): 0.16, (100, 20): 0.09, (50, 10): 0.13, (50, 20): 0.06}


def statistics(order: Order) -> Result:
    """Positives that clustering ignores, the share of uplink power, and how often the closest access points serve."""
    scale, log = order.scale, order.log
    deployments, phones = (12, 600) if scale == "quick" else (40, 2000)
    rows: list[list[Any]] = []
    details: dict[str, Any] = {}
    for access_points, candidates in CELLS:
        found = []
        for seed in range(1000, 1000 + deployments):
            world = paper_world(access_points, candidates, seed)
            found.append(network_statistics(world.survey(phones, part="statistics"), 10.0))
        details[f"L={access_points} c={candidates}"] = found
        wanted: dict[str, float] = {"ignored": IGNORED[access_points, candidates]}
        if (access_points, candidates) == (100, 10):
            wanted |= {"power_share": 0.85, "closest_three": 0.33, "closest": 0.42}
        for name, paper in wanted.items():
            mean, spread = mean_and_spread(found, name)
            away = (mean - paper) / spread
            rows.append([access_points, candidates, name, paper, f"{mean:.3f} ± {spread:.3f}", f"{away:+.1f}"])
            log(" | ".join(map(str, rows[-1])))
    return Result(
        title="Statistics of the paper's networks",
        columns=["access points", "candidates", "what", "paper", "ours ± spread over deployments", "spreads apart"],
        rows=rows,
        notes=[f"{deployments} deployments of {phones} phones; the paper shows one."],
        details=details,
    )


def fig2(order: Order) -> Result:
    """Precision and recall at one half, as the paper counts them and without the master's own link."""
    return _figure(order, "Figure 2", ("precision", "recall", "other_precision", "other_recall"))


def fig3(order: Order) -> Result:
    """Area under the curve and average precision, with and without the master's own link."""
    return _figure(order, "Figure 3", ("auc", "average_precision", "other_auc", "other_average_precision"))


def _figure(order: Order, title: str, names: tuple[str, ...]) -> Result:
    scale, out, log = order.scale, order.out, order.log
    rows: list[list[Any]] = []
    details: dict[str, Any] = {}
    for access_points, candidates in CELLS:
        steps = STEPS[scale]
        found = sage_figures(access_points, candidates, steps=steps, seeds=SEEDS, out=out, log=log)
        details[f"L={access_points} c={candidates}"] = found
        for name in names:
            paper = PAPER.get((name, access_points, candidates), "")
            rows.append([access_points, candidates, name.replace("_", " "), paper, spelled(found, name)])
    return Result(
        title=f"{title}: the paper's model on {len(SEEDS)} deployments",
        columns=["access points", "candidates", "figure", "paper", "ours ± spread over deployments"],
        rows=rows,
        notes=[
            f"{STEPS[scale]} steps of 100 phones, 10,000 training phones, 8,000 fresh ones to judge by.",
            "'other' leaves out the link to the master, which is positive by definition.",
            "Recall counts positives outside the candidates as misses, so it cannot pass 1 - ignored.",
        ],
        figures={f"cellfree-{title.lower().replace(' ', '')}.png": _bars(details, names[:2])},
        details=details,
    )


def _bars(details: dict[str, Any], names: tuple[str, ...]) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots(1, len(names), sharey=True)
    for panel, name in zip(axes, names):
        pairs = [mean_and_spread(found, name) for found in details.values()]
        panel.bar(
            range(len(pairs)), [mean for mean, _ in pairs], yerr=[s for _, s in pairs], color="#4878a8", capsize=4
        )
        panel.set_xticks(range(len(pairs)), [key.replace(" ", "\n") for key in details], fontsize=8)
        panel.set_title(name.replace("_", " "))
        panel.set_ylim(0, 1)
        panel.grid(axis="y", alpha=0.3)
    return png(figure, dpi=130)
