"""The paper's statistics of its networks, under both readings of its areas and both ways to draw shadowing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.systems.cellfree.studies.worlds import cells, mean_and_spread, settings_for, spelled
from fewer.systems.cellfree.task.statistics import network_statistics
from fewer.systems.cellfree.task.survey import World

__all__ = ["PAPER", "statistics", "statistics_settings"]

SIZES = {
    "quick": (6, 600),
    "full": (20, 2000),
    "paper": (40, 10_000),
}  # deployments, phones; the last: 100 graphs of 100
FIRST = 1000  # seed of the first deployment
READINGS: Mapping[str, tuple[str, dict[str, Any]]] = {  # a column: the areas' reading, and other settings
    "areas of the setup, FFT maps": ("paper", {"shadowing": "fft"}),
    "areas of the setup, Claussen's maps": ("paper", {}),
    "areas of the densities, FFT maps": ("paper-density", {"shadowing": "fft"}),
    "areas of the densities, Claussen's maps": ("paper-density", {}),
    "no shadowing, areas of the setup": ("paper", {"shadowing_db": 0.0}),
}
IGNORED = {(100, 10): 0.16, (100, 20): 0.09, (50, 10): 0.13, (50, 20): 0.06}
PAPER = {
    **{("ignored", *cell): share for cell, share in IGNORED.items()},
    ("power_share", 100, 10): 0.85,
    ("closest_three", 100, 10): 0.33,
    ("closest", 100, 10): 0.42,
}
SHOWN = ("ignored", "power_share", "closest_three", "closest", "positive", "fewer_than_three")
_ONLY_FIRST = SHOWN[1:4] + SHOWN[5:]  # do not depend on candidates, or hardly


def _readings(order: Order) -> dict[str, tuple[str, dict[str, Any]]]:
    return {"measured": ("improved", {})} if order.data else dict(READINGS)


def statistics_settings(order: Order) -> dict[str, Any]:
    """How many deployments and phones, and the simulator's settings of every column."""
    deployments, phones = SIZES[order.scale]
    found: dict[str, Any] = {"deployments": 1 if order.data else deployments, "phones": phones, "first_seed": FIRST}
    for name, (reading, changes) in _readings(order).items():
        for cell in cells(order):
            own = vars(settings_for(order, reading, cell, FIRST, **changes))
            found.setdefault(name, {})[f"L={cell[0]} c={cell[1]}"] = own
    return found


def statistics(order: Order) -> Result:
    """Positives that clustering ignores, the share of uplink power, and how often the closest access points serve."""
    made = statistics_settings(order)
    details: dict[str, dict[str, list[dict[str, float]]]] = {}
    for name, (reading, changes) in _readings(order).items():
        own = details.setdefault(name, {f"L={size} c={candidates}": [] for size, candidates in cells(order)})
        for seed in range(FIRST, FIRST + made["deployments"]):
            deployments: dict[int, Any] = {}
            for cell in cells(order):
                settings = settings_for(order, reading, cell, seed, **changes)
                world = World.make(settings, deployments.get(cell[0]))
                deployments[cell[0]] = world.deployment  # candidates do not change it
                survey = world.survey(made["phones"], part="statistics")
                own[f"L={cell[0]} c={cell[1]}"].append(network_statistics(survey, settings.threshold_db))
        order.log(name)
    rows: list[list[Any]] = []
    for index, cell in enumerate(cells(order)):
        for what in SHOWN:
            if what in _ONLY_FIRST and index and cells(order)[index - 1][0] == cell[0]:
                continue
            paper = "" if order.data else PAPER.get((what, *cell), "")
            ours = [spelled(own[f"L={cell[0]} c={cell[1]}"], what) for own in details.values()]
            rows.append([*cell, what.replace("_", " "), paper, *ours])
    return Result(
        title=f"Statistics of the paper's networks, {order.data or 'simulated'}, {made['deployments']} deployments, "
        "mean ± spread",
        columns=["access points", "candidates", "what", "paper", *details],
        rows=rows,
        notes=[
            f"{made['phones']:,} phones in each deployment; the paper shows one. It gives no deviation or correlation "
            "of shadowing: 8 dB, and 0.5 between access points, were chosen so that the column of FFT maps fits.",
            "ignored: share of serving links outside the candidates; power share: of the uplink power, what serving "
            "candidates receive; closest, closest three: how often the access points nearest to the master serve; "
            "positive: share of serving links among the candidates and the master; fewer than three: share of phones "
            "that fewer than three access points of the network serve.",
        ],
        figures={"cellfree-statistics.png": _picture(details)} if not order.data else {},
        details=details,
    )


def _picture(details: Mapping[str, Mapping[str, list[dict[str, float]]]]) -> bytes:
    from matplotlib.figure import Figure

    from fewer.report.figure import png

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(details)
    for index, (name, own) in enumerate(details.items()):
        pairs = [mean_and_spread(own[f"L={size} c={candidates}"], what) for what, size, candidates in PAPER]
        places = [place + (index - (len(details) - 1) / 2) * width for place in range(len(pairs))]
        means, spreads = zip(*pairs)
        axes.bar(places, means, width, yerr=spreads, capsize=2, label=name)
    for place, paper in enumerate(PAPER.values()):
        axes.hlines(paper, place - 0.45, place + 0.45, "k", label="" if place else "paper")
    axes.set_xticks(
        range(len(PAPER)),
        [f"{what.replace('_', ' ')}\nL={size} c={candidates}" for what, size, candidates in PAPER],
        fontsize=7,
    )
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=6)
    return png(figure, dpi=130)
