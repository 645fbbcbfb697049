"""Every selector against what is possible, the ceiling itself, and what happens when the network grows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.systems.cellfree.studies.worlds import SEEDS, mean_and_spread, paper_world, spelled
from fewer.systems.cellfree.task.selectors.boosting import Boosting
from fewer.systems.cellfree.task.selectors.ceiling import ceiling_table
from fewer.systems.cellfree.task.selectors.kriging import Kriging
from fewer.systems.cellfree.task.selectors.particles import Bayes, Fingerprint
from fewer.systems.cellfree.task.selectors.selector import Frequency, Nearest, Selector
from fewer.systems.cellfree.task.selectors.trained import Trained
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.survey import World

__all__ = ["ceiling", "scaling", "selectors"]

CELLS = ((100, 10, 0.0), (100, 10, 2.0), (100, 20, 0.0), (100, 20, 2.0), (50, 10, 0.0), (50, 10, 2.0))


def _all(scale: str) -> dict[str, Selector]:
    found: dict[str, Selector] = {
        "nearest 3": Nearest(3),
        "frequency": Frequency(),
        "fingerprint": Fingerprint(),
        "local": Trained("local", steps=3000),
        "boosting": Boosting(),
        "kriging": Kriging(),
        "ceiling": Bayes(300_000 if scale == "quick" else 1_000_000),
    }
    return found


def selectors(order: Order) -> Result:
    """All selectors on the same phones, without error and with 2 dB, and their share of the ceiling."""
    scale, log = order.scale, order.log
    cells = CELLS[:2] if scale == "quick" else CELLS
    rows: list[list[Any]] = []
    details: dict[str, Any] = {}
    for access_points, candidates, error_db in cells:
        found: dict[str, list[dict[str, float]]] = {}
        for seed in SEEDS:
            world = paper_world(access_points, candidates, seed, error_db=error_db)
            train, test = world.survey(10_000, part="train"), world.survey(4_000, part="test")
            for name, selector in _all(scale).items():
                start = time.monotonic()
                metrics = selector.fit(world, survey=train).metrics(test)
                found.setdefault(name, []).append({**metrics, "seconds": time.monotonic() - start})
            best = found["ceiling"][-1]["average_precision"]
            for name in found:
                found[name][-1]["share_of_ceiling"] = found[name][-1]["average_precision"] / best
            said = ", ".join(f"{name} {each[-1]['other_average_precision']:.3f}" for name, each in found.items())
            log(f"L={access_points} c={candidates} {error_db:g} dB deployment {seed}: {said}")
        details[f"L={access_points} c={candidates} error={error_db:g}"] = found
        shown = ("other_average_precision", "average_precision", "share_of_ceiling", "precision", "recall")
        for name, each in found.items():
            row = [access_points, candidates, error_db, name, *(spelled(each, key) for key in shown)]
            rows.append([*row, f"{mean_and_spread(each, 'calibration_error')[0]:.3f}"])
    return Result(
        title=f"Selectors on {len(SEEDS)} deployments, 10,000 training phones, 3 measurements",
        columns=["access points", "candidates", "error in dB", "selector", "AP without master", "AP",
                 "share of the ceiling's AP", "precision", "recall", "calibration error"],
        rows=rows,
        notes=[
            "kriging uses the places of the training phones and everything they heard (with the same error);"
            " the others use their reports and labels alone.",
            "The ceiling knows the true map; it is not a competitor.",
        ],
        details=details,
    )  # fmt: skip


def ceiling(order: Order) -> Result:
    """What any learner could reach with n measurements of error s."""
    scale, log = order.scale, order.log
    seeds, places = (SEEDS[:2], 300_000) if scale == "quick" else (SEEDS, 1_000_000)
    tables = []
    for seed in seeds:
        tables.append(ceiling_table(paper_world(100, 10, seed), places=places, phones=4000))
        log(f"deployment {seed}")
    shown = ("precision", "recall", "recall_inside", "auc", "average_precision", "other_average_precision")
    rows = [
        [same[0]["error_db"], int(same[0]["measured"]), *(spelled(same, name) for name in shown)]
        for same in zip(*tables)
    ]
    return Result(
        title="The ceiling: the posterior over the true map, 100 access points, 10 candidates",
        columns=["error in dB", "measured", *(name.replace("_", " ") for name in shown)],
        rows=rows,
        notes=["'measured' includes the master, whose choice is taken as free of error."],
        details={str(seed): table for seed, table in zip(seeds, tables)},
    )


def scaling(order: Order) -> Result:
    """The local model as the network grows at the paper's density, 100 training phones per access point."""
    scale, log = order.scale, order.log
    sizes = (100, 1000) if scale == "quick" else (100, 1000, 10_000)
    rows: list[list[Any]] = []
    details: dict[str, Any] = {}
    for size in sizes:
        world = World.make(
            Settings(
                access_points=size,
                side_m=100.0 * size**0.5,
                train_phones=100 * size,
                test_phones=8000,
                shadowing="spectral",
                deployment_seed=SEEDS[0],
            )
        )
        start = time.monotonic()
        batch = 100 if size == 100 else 1000
        trained = Trained("local", steps=30 * 100 * size // batch if size < 10_000 else 10_000, batch=batch).fit(world)
        seconds = time.monotonic() - start
        figures = trained.metrics(world.survey(8000, part="test"))
        weights = sum(p.numel() for p in trained.modules["net"].parameters())
        speed = _phones_per_second(trained, world)
        details[str(size)] = {**figures, "weights": weights, "seconds": seconds, "phones_per_second": speed}
        rows.append([size, weights, f"{speed:,.0f}", f"{figures['other_average_precision']:.3f}",
                     f"{figures['average_precision']:.3f}", f"{figures['ignored']:.3f}", f"{seconds:.0f}"])  # fmt: skip
        log(" | ".join(map(str, rows[-1])))
    return Result(
        title="The local model at the paper's density",
        columns=["access points", "weights", "phones/s, batches of 4096", "AP without master", "AP", "ignored",
                 "seconds to train"],
        rows=rows,
        notes=["100 training phones per access point; one deployment of each size."],
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
