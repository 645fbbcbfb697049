"""What any selector could reach, and what the local model reaches as the network grows."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from fewer.studies.order import Order
from fewer.studies.plan import Planned
from fewer.studies.study import Result
from fewer.systems.cellfree.studies.worlds import (
    SEEDS,
    refuse_data,
    seeds_of,
    settings_for,
    spelled,
    timed_engine,
    world_of,
)
from fewer.systems.cellfree.task.selectors.ceiling import ceiling_table
from fewer.systems.cellfree.task.selectors.selector import Selector
from fewer.systems.cellfree.task.selectors.trained import Trained
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.survey import World

__all__ = ["PLACES", "ceiling", "ceiling_settings", "scaling", "scaling_plan", "scaling_settings"]

CELL, PHONES = (100, 10), 4_000
PLACES = {"quick": 300_000, "full": 1_000_000, "paper": 1_000_000}  # of the posterior over the true map
CEILING_DEPLOYMENTS = 5  # at most


def ceiling_settings(order: Order) -> dict[str, Any]:
    """Deployments and places."""
    return {
        "deployments": list(seeds_of(order, CEILING_DEPLOYMENTS)), "places": PLACES[order.scale], "phones": PHONES,
        "settings": vars(settings_for(order, "improved", CELL, SEEDS[0])),
    }  # fmt: skip


def ceiling(order: Order) -> Result:
    """What any learner could reach with n measurements of error s."""
    refuse_data(order, "the ceiling needs the true map, which only a simulation has")
    seeds, tables = seeds_of(order, CEILING_DEPLOYMENTS), []
    for seed in seeds:
        tables.append(ceiling_table(world_of(order, "improved", CELL, seed), places=PLACES[order.scale], phones=PHONES))
        order.log(f"deployment {seed}")
    shown = ("precision", "recall", "recall_inside", "auc", "average_precision", "other_average_precision")
    rows = [
        [same[0]["error_db"], int(same[0]["measured"]), *(spelled(same, name) for name in shown)]
        for same in zip(*tables)
    ]
    return Result(
        title="The ceiling: the posterior over the true map, 100 access points, 10 candidates, simulated, "
        f"{len(seeds)} deployments, mean ± spread",
        columns=["error in dB", "measured", *(name.replace("_", " ") for name in shown)],
        rows=rows,
        notes=["'measured' includes the master, whose choice is taken as free of error."],
        details={str(seed): table for seed, table in zip(seeds, tables)},
    )


def _growth(order: Order) -> list[tuple[Settings, Trained]]:
    """Networks at the paper's density, and what learns them."""
    found = []
    for size in (100, 1000) if order.scale == "quick" else (100, 1000, 10_000):
        settings = Settings(access_points=size, side_m=100.0 * size**0.5, train_phones=100 * size, test_phones=8000,
                            shadowing="spectral", deployment_seed=SEEDS[0], learn_missing=0.0)  # fmt: skip
        batch = 100 if size == 100 else 1000
        steps = 30 * 100 * size // batch if size < 10_000 else 10_000
        found.append((settings, Trained("local", steps=steps, batch=batch)))
    return found


def scaling_settings(order: Order) -> dict[str, Any]:
    """Of each size."""
    return {
        str(settings.access_points): {**vars(settings), "steps": one.training.steps, "batch": one.training.batch}
        for settings, one in _growth(order)
    }


def scaling_plan(order: Order) -> list[Planned]:
    """One training for each size."""
    return [
        Planned(f"local L={settings.access_points}", one.training.steps, partial(timed_engine, settings, one.training))
        for settings, one in _growth(order)
    ]


def scaling(order: Order) -> Result:
    """The local model as the network grows at the paper's density, 100 training phones per access point."""
    refuse_data(order, "networks of many sizes are simulated")
    rows: list[list[Any]] = []
    details: dict[str, Any] = {}
    for settings, trained in _growth(order):
        size, world = settings.access_points, World.make(settings)
        start = time.monotonic()
        trained.fit(world)
        seconds = time.monotonic() - start
        figures = trained.metrics(world.survey(8000, part="test"))
        weights = sum(p.numel() for p in trained.modules["net"].parameters())
        speed = _phones_per_second(trained, world)
        details[str(size)] = {**figures, "weights": weights, "seconds": seconds, "phones_per_second": speed}
        rows.append([size, weights, f"{speed:,.0f}", f"{figures['other_average_precision']:.3f}",
                     f"{figures['average_precision']:.3f}", f"{figures['ignored']:.3f}", f"{seconds:.0f}"])  # fmt: skip
        order.log(" | ".join(map(str, rows[-1])))
    return Result(
        title="The local model at the paper's density, simulated, one deployment of each size",
        columns=["access points", "weights", "phones/s, batches of 4096", "AP without master", "AP", "ignored",
                 "seconds to train"],
        rows=rows,
        notes=["100 training phones per access point."],
        details=details,
    )  # fmt: skip


def _phones_per_second(selector: Selector, world: World) -> float:
    survey = world.survey(4096, part="speed")
    seconds = []
    for _ in range(12):
        start = time.perf_counter()
        selector.scores(survey.master, survey.rsrp_db, survey.reported)
        seconds.append(time.perf_counter() - start)
    return len(survey) / float(np.median(seconds))
