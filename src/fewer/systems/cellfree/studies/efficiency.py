"""What it is for: spectral efficiency with clusters from three measurements against clusters from all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.systems.cellfree.studies.worlds import refuse_data, seeds_of, settings_for, world_of
from fewer.systems.cellfree.task.arrays import Bools, generator
from fewer.systems.cellfree.task.selectors.boosting import Boosting
from fewer.systems.cellfree.task.selectors.kriging import Kriging
from fewer.systems.cellfree.task.selectors.selector import Nearest, Selection, Selector
from fewer.systems.cellfree.task.spectral.efficiency import Setup
from fewer.systems.cellfree.task.spectral.report import Comparison, compare, pooled

__all__ = ["efficiency", "efficiency_settings"]

PHONES = 20  # at a time, on 10 pilots
ACCESS_POINTS, MEASURED, CANDIDATES = 100, 3, 20
TRAIN = 10_000  # phones
DROPS = {"quick": 3, "full": 10, "paper": 10}  # times that phones are placed in a deployment
MOST = 5  # deployments
SCHEMES = ("mr", "lp-mmse", "p-mmse")
COLUMNS = ("uplink_median_lost_percent", "uplink_likely95_lost_percent", "downlink_median_lost_percent",
           "downlink_likely95_lost_percent", "servers_per_phone_predicted")  # fmt: skip


def _clusters(selection: Selection, access_points: int) -> Bools:
    """(phones, L)."""
    found = np.zeros((len(selection), access_points), dtype=bool)
    found[np.nonzero(selection.chosen)[0], selection.candidates[selection.chosen]] = True
    return found


def efficiency_settings(order: Order) -> dict[str, Any]:
    """Deployments, phones and how they are processed."""
    seeds = seeds_of(order, MOST)
    return {
        "deployments": list(seeds), "drops": DROPS[order.scale], "phones": PHONES, "train_phones": TRAIN,
        "measured": MEASURED, "schemes": list(SCHEMES), "realisations": Setup().realisations,
        "settings": vars(settings_for(order, "improved", (ACCESS_POINTS, CANDIDATES), seeds[0])),
    }  # fmt: skip


def efficiency(order: Order) -> Result:
    """Median and 95 %-likely efficiency lost by each selector, and the measurements it saves."""
    refuse_data(order, "a log of received power is no gain; the study simulates")
    log, seeds = order.log, seeds_of(order, MOST)
    found: dict[tuple[str, str], list[Comparison]] = {}
    for seed in seeds:
        world = world_of(order, "improved", (ACCESS_POINTS, CANDIDATES), seed)
        train = world.survey(TRAIN, part="train")
        kinds: dict[str, Selector] = {"kriging": Kriging(), "boosting": Boosting(), "nearest 3": Nearest(3)}
        fitted = {name: one.fit(world, survey=train) for name, one in kinds.items()}
        for drop in range(DROPS[order.scale]):
            phones = generator(seed, f"efficiency/{drop}").uniform(0, world.deployment.side_m, (PHONES, 2))
            gain = world.deployment.gain_db(phones)
            survey = world.survey_at(phones, generator(seed, f"efficiency reports/{drop}"))
            for name, selector in fitted.items():
                clusters = _clusters(selector.select(survey.master, survey.rsrp_db), len(world.deployment))
                for scheme in SCHEMES:
                    one = compare(gain, clusters, setup=Setup(scheme=scheme, seed=drop), measured=MEASURED)
                    found.setdefault((name, scheme), []).append(one)
        log(f"deployment {seed}")
    rows: list[list[Any]] = []
    details: dict[str, Any] = {}
    for (name, scheme), drops_of in found.items():
        figures = pooled(drops_of).metrics
        details[f"{name}, {scheme}"] = figures
        rows.append([name, scheme, *(f"{figures[column]:.2f}" for column in COLUMNS)])
        log(" | ".join(map(str, rows[-1])))
    best = {key[0]: pooled(each) for key, each in found.items() if key[1] == "p-mmse"}
    return Result(
        title=f"Spectral efficiency lost by choosing from {MEASURED} measurements instead of {ACCESS_POINTS}, "
        f"simulated, {len(seeds)} deployments",
        columns=["selector", "scheme", *(column.replace("_", " ") for column in COLUMNS)],
        rows=rows,
        notes=[
            f"{PHONES} phones at a time, {len(seeds)} deployments, clusters of the same sizes, "
            f"{1 - MEASURED / ACCESS_POINTS:.0%} of the measurements saved.",
            "Both sides share pilots and fading; negative percentages are gains.",
        ],
        figures={"cellfree-se.png": _curves(best)},
        details=details,
    )


def _curves(comparisons: dict[str, Comparison]) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for panel, link in zip(axes, ("uplink", "downlink")):
        for name, one in comparisons.items():
            panel.plot(*one.cdfs[f"{link}_predicted"], label=name)
        ideal = next(iter(comparisons.values()))
        panel.plot(*ideal.cdfs[f"{link}_ideal"], "k--", label="all measured")
        panel.set(xlabel="bit/s/Hz", title=f"{link}, P-MMSE")
        panel.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    return png(figure, dpi=130)
