"""Every selector against what is possible, and what each is allowed to know."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from fewer.core.files.atomic import write_atomically
from fewer.studies.order import Order
from fewer.studies.plan import Planned
from fewer.studies.study import Result
from fewer.systems.cellfree.studies.limits import PLACES
from fewer.systems.cellfree.studies.worlds import (
    SEEDS,
    cells,
    mean_and_spread,
    seeds_of,
    settings_for,
    spelled,
    timed_engine,
    world_of,
)  # fmt: skip
from fewer.systems.cellfree.task.selectors.boosting import Boosting
from fewer.systems.cellfree.task.selectors.kriging import Kriging
from fewer.systems.cellfree.task.selectors.particles import Bayes, Fingerprint
from fewer.systems.cellfree.task.selectors.selector import Frequency, Nearest, Selector
from fewer.systems.cellfree.task.selectors.trained import Trained

__all__ = ["selectors", "selectors_plan", "selectors_settings"]

CELLS = ((100, 10), (50, 10), (100, 20))
ERRORS_DB = (0.0, 2.0)
TRAIN, TEST = 10_000, 4_000  # phones
MODELS, STEPS = ("sage", "local"), 3000  # updates of 100 phones
_GAPS = (
    "reports of the training phones and how far below the master each candidate was, "
    "signals between access points and where they stand"
)
KNOWS = {  # beside the master and the reports of the phone that asks
    "nearest 3": "where access points stand",
    "frequency": "labels of the training phones",
    "fingerprint": "reports and labels of the training phones",
    "the paper's network": "reports and labels of the training phones, signals between access points",
    "local": _GAPS,
    "boosting": _GAPS,
    "kriging": "where the training phones stood, all they heard, where access points stand, how shadowing correlates",
    "ceiling": "the true map, everywhere; no competitor",
}


def _all(order: Order) -> dict[str, Callable[[], Selector]]:
    found: dict[str, Callable[[], Selector]] = {
        "nearest 3": lambda: Nearest(3),
        "frequency": Frequency,
        "fingerprint": Fingerprint,
        "the paper's network": lambda: _network("sage", order),
        "local": lambda: _network("local", order),
        "boosting": Boosting,
        "kriging": Kriging,
        "ceiling": lambda: Bayes(PLACES[order.scale]),
    }
    if order.data:
        del found["ceiling"]  # nobody knows the true map
    return found


def _network(model: str, order: Order) -> Trained:
    return Trained(model, steps=STEPS // (5 if order.scale == "quick" else 1))


def _cells(order: Order) -> list[tuple[tuple[int, int], float]]:
    own = cells(order) if order.data else CELLS[:1] if order.scale == "quick" else CELLS
    return [(cell, error) for cell in own for error in ERRORS_DB]


def selectors_settings(order: Order) -> dict[str, Any]:
    """Networks, phones, deployments and the updates of those that are trained."""
    return {
        "deployments": list(seeds_of(order)), "train_phones": TRAIN, "test_phones": TEST,
        "updates": _network("sage", order).training.steps,
        "batch": 100, "places_of_the_ceiling": 0 if order.data else PLACES[order.scale],
        "networks": [
            vars(settings_for(order, "improved", cell, SEEDS[0], error_db=error)) for cell, error in _cells(order)
        ],
    }  # fmt: skip


def selectors_plan(order: Order) -> list[Planned]:
    """Both networks on every deployment and error."""
    times, plan = len(seeds_of(order)), []
    for cell, error in _cells(order):
        for model in MODELS:
            world = settings_for(order, "improved", cell, SEEDS[0], error_db=error, model=model)
            trained = _network(model, order)
            name = f"{model} L={cell[0]} c={cell[1]} error={error:g}"
            plan.append(Planned(name, trained.training.steps, partial(timed_engine, world, trained.training), times))
    return plan


def selectors(order: Order) -> Result:
    """All selectors on the same phones, without error and with 2 dB, and their share of the ceiling."""
    rows: list[list[Any]] = []
    details: dict[str, Any] = {}
    shown = ("other_average_precision", "average_precision", "share_of_ceiling", "precision", "recall")
    for cell, error_db in _cells(order):
        found: dict[str, list[dict[str, float]]] = {}
        for seed in seeds_of(order):
            here = _on_deployment(order, cell, error_db, seed)
            best = here["ceiling"]["average_precision"] if "ceiling" in here else float("nan")
            for name, metrics in here.items():
                share = {} if order.data else {"share_of_ceiling": metrics["average_precision"] / best}
                found.setdefault(name, []).append({**metrics, **share})
        details[f"L={cell[0]} c={cell[1]} error={error_db:g}"] = found
        for name, each in found.items():
            cells_of = (spelled(each, key) if key in each[0] else "-" for key in shown)
            error = f"{mean_and_spread(each, 'calibration_error')[0]:.3f}"
            rows.append([*cell, error_db, name, KNOWS[name], *cells_of, error])
    return Result(
        title=f"Selectors, {order.data or 'simulated'}, {len(seeds_of(order))} deployments, {TRAIN:,} training phones, "
        "3 measurements, mean ± spread",
        columns=["access points", "candidates", "error in dB", "selector", "may know, beside a phone's reports",
                 "AP without master", "AP", "share of the ceiling's AP", "precision", "recall", "calibration error"],
        rows=rows,
        notes=[
            f"{TEST:,} fresh phones to judge by; the error is in the reports of training and test phones, and in all "
            "that kriging's phones heard.",
            f"Both networks are trained with {_network('sage', order).training.steps:,} updates of 100 phones. The "
            "paper's has masks beside scaled inputs; its literal reading is in cellfree/fig2 and cellfree/fig3.",
        ],
        details=details,
    )  # fmt: skip


def _on_deployment(order: Order, cell: tuple[int, int], error_db: float, seed: int) -> dict[str, dict[str, float]]:
    """Every selector's metrics; those that an earlier run left in `out` are read."""
    path = order.out / f"cellfree-selectors-{order.scale}{'-data' if order.data else ''}.json"
    known: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.exists() else {}
    world, found = None, {}
    for name, make in _all(order).items():
        key = f"L={cell[0]} c={cell[1]} error={error_db:g} deployment={seed} {name}"
        if key not in known:
            world = world or world_of(order, "improved", cell, seed, error_db=error_db)
            start = time.monotonic()
            known[key] = (
                make().fit(world, survey=world.survey(TRAIN, part="train")).metrics(world.survey(TEST, part="test"))
            )
            known[key]["seconds"] = time.monotonic() - start
            write_atomically(path, (json.dumps(known, indent=1) + "\n").encode())
            order.log(f"{key}: {known[key]['other_average_precision']:.3f}")
        found[name] = known[key]
    return found
