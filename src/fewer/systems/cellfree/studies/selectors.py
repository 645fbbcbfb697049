"""Every selector against what is possible, and what each is allowed to know."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fewer.core.files.atomic import write_atomically
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces
from fewer.studies.plan import Planned
from fewer.studies.study import Result
from fewer.systems.cellfree.presets import PRESETS
from fewer.systems.cellfree.studies.cost import costs
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

__all__ = ["selectors", "selectors_pieces", "selectors_plan", "selectors_settings"]

CELLS = ((100, 10), (50, 10), (100, 20))
TAUGHT = ((CELLS[0], 0.0),)  # where the distilled selector is trained, a minute and more each, and costs are taken
ERRORS_DB = (0.0, 2.0)
TRAIN, TEST, TIMED = 10_000, 4_000, 1_000  # phones
MODELS, STEPS = ("sage", "local"), 3000  # updates of 100 phones
_GAPS = (
    "reports of the training phones and how far below the master each candidate was, "
    "signals between access points and where they stand"
)
_EVERYTHING = "where the training phones stood, all they heard, where access points stand, how shadowing correlates"
KNOWS = {  # beside the master and the reports of the phone that asks
    "nearest 3": "where access points stand",
    "frequency": "labels of the training phones",
    "fingerprint": "reports and labels of the training phones",
    "the paper's network": "reports and labels of the training phones, signals between access points",
    "local": _GAPS,
    "boosting": _GAPS,
    "kriging": _EVERYTHING,
    "distilled": _EVERYTHING,
    "ceiling": "the true map, everywhere; no competitor",
}


def _all(order: Order, cell: tuple[int, int], error_db: float) -> dict[str, Callable[[], Selector]]:
    found: dict[str, Callable[[], Selector]] = {
        "nearest 3": lambda: Nearest(3),
        "frequency": Frequency,
        "fingerprint": Fingerprint,
        "the paper's network": lambda: _network("sage", order),
        "local": lambda: _network("local", order),
        "boosting": Boosting,
        "kriging": Kriging,
        "distilled": lambda: _distilled(order),
        "ceiling": lambda: Bayes(PLACES[order.scale]),
    }
    if not _taught(order, cell, error_db):
        del found["distilled"]
    if order.data:
        del found["ceiling"]  # nobody knows the true map
    return found


def _taught(order: Order, cell: tuple[int, int], error_db: float) -> bool:
    return bool(order.data) or (cell, error_db) in TAUGHT


def _network(model: str, order: Order) -> Trained:
    return Trained(model, steps=STEPS // (5 if order.scale == "quick" else 1))


def _distilled(order: Order) -> Trained:
    """The preset; a fifth of its updates at scale quick."""
    words, share = PRESETS["distilled"], 5 if order.scale == "quick" else 1
    changes = {"width": words["settings"]["width"]}
    return Trained("distilled", steps=words["steps"] // share, batch=words["batch"], changes=changes)


def _cells(order: Order) -> list[tuple[tuple[int, int], float]]:
    own = cells(order) if order.data else CELLS[:1] if order.scale == "quick" else CELLS
    return [(cell, error) for cell in own for error in ERRORS_DB]


def selectors_settings(order: Order) -> dict[str, Any]:
    """Networks, phones, deployments and the updates of those that are trained."""
    return {
        "deployments": list(seeds_of(order)), "train_phones": TRAIN, "test_phones": TEST,
        "updates": _network("sage", order).training.steps, "batch": 100,
        "distilled": {**_distilled(order).changes, "updates": _distilled(order).training.steps,
                      "batch": _distilled(order).training.batch},
        "places_of_the_ceiling": 0 if order.data else PLACES[order.scale],
        "networks": [
            vars(settings_for(order, "improved", cell, SEEDS[0], error_db=error)) for cell, error in _cells(order)
        ],
    }  # fmt: skip


def selectors_plan(order: Order) -> list[Planned]:
    """All networks on every deployment and error."""
    times, plan = len(seeds_of(order)), []
    networks = {**{model: _network(model, order) for model in MODELS}, "distilled": _distilled(order)}
    for cell, error in _cells(order):
        for model, trained in networks.items():
            if model == "distilled" and not _taught(order, cell, error):
                continue
            world = settings_for(order, "improved", cell, SEEDS[0], error_db=error, **trained.changes)
            name = f"{model} L={cell[0]} c={cell[1]} error={error:g}"
            plan.append(Planned(name, trained.training.steps, partial(timed_engine, world, trained.training), times))
    return plan


def selectors(order: Order) -> Result:
    """All selectors on the same phones, without error and with 2 dB, their share of the ceiling and their cost."""
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
        cost = _cost(order, cell) if _taught(order, cell, 0.0) else {}
        for name, each in found.items():
            cells_of = (spelled(each, key) if key in each[0] else "-" for key in shown)
            error = f"{mean_and_spread(each, 'calibration_error')[0]:.3f}"
            spent = (f"{cost[name][key]:.3g}" if name in cost else "-" for key in ("batch_us", "alone_us"))
            rows.append([*cell, error_db, name, KNOWS[name], *cells_of, error, *spent])
    timed = [cell for cell, error_db in _cells(order) if error_db == 0 and _taught(order, cell, 0.0)]
    details["costs"] = {f"L={cell[0]} c={cell[1]}": _cost(order, cell) for cell in timed}
    return Result(
        title=f"Selectors, {order.data or 'simulated'}, {len(seeds_of(order))} deployments, {TRAIN:,} training phones, "
        "3 measurements, mean ± spread",
        columns=["access points", "candidates", "error in dB", "selector", "may know, beside a phone's reports",
                 "AP without master", "AP", "share of the ceiling's AP", "precision", "recall", "calibration error",
                 f"µs a phone of {TIMED:,}", "µs a phone alone"],
        rows=rows,
        notes=[
            f"{TEST:,} fresh phones to judge by; the error is in the reports of training and test phones, and in all "
            "that kriging's phones heard.",
            f"The paper's network and local are trained with {_network('sage', order).training.steps:,} updates of 100 "
            "phones. The paper's has masks beside scaled inputs; its literal reading is in cellfree/fig2 and "
            "cellfree/fig3.",
            "distilled is the local model, wider, taught by phones that are imagined on the map that kriging draws "
            "(preset `distilled`); boosting is a scikit-learn pipeline: HistGradientBoostingClassifier on these "
            "features and on kernel fingerprints.",
            "Cost is processor time of one thread, medians in turns on the first deployment without error, taken with "
            "distilled on the first network alone; local and distilled run in packs, the paper's network with kept "
            "embeddings in torch, the others in numpy.",
        ],
        details=details,
    )  # fmt: skip


def selectors_pieces(order: Order) -> Pieces:
    """A piece is all selectors on one deployment, or what they cost on one network."""
    every: dict[str, Piece] = {}
    for cell, error in _cells(order):
        for seed in seeds_of(order):
            name = f"L{cell[0]}-c{cell[1]}-{error:g}dB-{seed}"
            every[name] = Piece("every selector on one deployment", partial(_on_deployment, order, cell, error, seed))
        if error == 0 and _taught(order, cell, error):
            every[f"cost-L{cell[0]}-c{cell[1]}"] = Piece(
                "processor time of every selector", partial(_cost, order, cell)
            )
    return Pieces(every, Choices)


@dataclass(frozen=True)
class Choices:
    """Nothing else may be chosen."""


class _Kept:
    """What an earlier run left of a piece."""

    def __init__(self, order: Order, piece: str) -> None:
        kind = f"{order.scale}{'-data' if order.data else ''}"
        self.path = order.out / f"cellfree-selectors-{kind}" / f"{piece}.json"
        self.known: dict[str, dict[str, float]] = json.loads(self.path.read_text()) if self.path.exists() else {}

    def keep(self, name: str, found: dict[str, float]) -> None:
        self.known[name] = found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, (json.dumps(self.known, indent=1) + "\n").encode())


def _on_deployment(order: Order, cell: tuple[int, int], error_db: float, seed: int) -> dict[str, dict[str, float]]:
    """Every selector's metrics; those that an earlier run left in `out` are read."""
    piece = f"L{cell[0]}-c{cell[1]}-{error_db:g}dB-{seed}"
    kept, world = _Kept(order, piece), None
    for name, make in _all(order, cell, error_db).items():
        if name in kept.known:
            continue
        world = world or world_of(order, "improved", cell, seed, error_db=error_db)
        start = time.monotonic()
        found = make().fit(world, survey=world.survey(TRAIN, part="train")).metrics(world.survey(TEST, part="test"))
        kept.keep(name, {**found, "seconds": time.monotonic() - start})
        order.log(f"{piece} {name}: {found['other_average_precision']:.3f}")
    return {name: kept.known[name] for name in _all(order, cell, error_db)}


def _cost(order: Order, cell: tuple[int, int]) -> dict[str, dict[str, float]]:
    """Of networks that were not trained, which cost what trained ones do; the ceiling is no competitor."""
    piece = f"cost-L{cell[0]}-c{cell[1]}"
    kept = _Kept(order, piece)
    if not kept.known:
        world = world_of(order, "improved", cell, SEEDS[0])
        fresh = {
            "the paper's network": Trained("sage", steps=0), "local": Trained("local", steps=0),
            "distilled": Trained("distilled", steps=0, changes=_distilled(order).changes),
        }  # fmt: skip
        ready = {name: fresh.get(name) or make() for name, make in _all(order, cell, 0.0).items() if name != "ceiling"}
        train = world.survey(TRAIN, part="train")
        few = train.rows(slice(100))  # whatever networks were taught
        fitted = {name: one.fit(world, survey=few if name in fresh else train) for name, one in ready.items()}
        for name, found in costs(fitted, world.survey(TIMED, part="test")).items():
            kept.keep(name, found)
        order.log(f"{piece}: " + ", ".join(f"{name} {one['batch_us']:.3g} us" for name, one in kept.known.items()))
    return kept.known
