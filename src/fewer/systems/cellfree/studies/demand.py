"""How the paper's network takes more phones and more access points: its claims about scale, measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from fewer.bench.row import interleaved_seconds
from fewer.core.engines.evaluate import predictor
from fewer.core.engines.state import fresh_modules
from fewer.core.task import Predict
from fewer.studies.order import Order
from fewer.studies.plan import Planned
from fewer.studies.study import Result
from fewer.systems.cellfree.studies.worlds import Case, cells, mean_and_spread, plan_of, refuse_data, seeds_of, spelled
from fewer.systems.cellfree.task.arrays import generator
from fewer.systems.cellfree.task.models.cached import cached_predictor
from fewer.systems.cellfree.task.models.sage import Sage
from fewer.systems.cellfree.task.selectors.selector import Nearest
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.statistics import metrics
from fewer.systems.cellfree.task.task import CellFree, Phones, phones_of

__all__ = ["cached", "cached_settings", "phones", "phones_plan", "phones_settings"]

READING = "paper"
DEPLOYMENTS = 3  # at most, but at scale paper
PHONES = {"quick": 1000, "full": 3000, "paper": 10_000}
GRAPHS = (1, 10, 30, 100, 300, 1000)  # phones in a graph
RANDOM = (1, 200)  # the paper: a random number, it does not say between what
SIZES = {"quick": (50, 100), "full": (50, 100, 200, 400, 800), "paper": (50, 100, 200, 400, 800)}  # access points
TOGETHER = 100  # phones


def _cases(order: Order) -> list[Case]:
    most = len(seeds_of(order)) if order.scale == "paper" else DEPLOYMENTS
    return [Case(order, READING, cells(order)[0], seed) for seed in seeds_of(order, most)]


def phones_settings(order: Order) -> dict[str, Any]:
    """The networks that are trained, and the graphs they are validated on."""
    cases = _cases(order)
    return {
        "reading": READING, "training": cases[0].words(), "deployments": [case.seed for case in cases],
        "settings": vars(cases[0].settings), "phones": PHONES[order.scale], "graphs": list(GRAPHS),
        "random": list(RANDOM),
    }  # fmt: skip


def phones_plan(order: Order) -> list[Planned]:
    """One training for each deployment."""
    return plan_of(_cases(order))


def _cut(total: int, size: int | None, seed: int) -> Iterator[slice]:
    """Graphs of so many phones; of a random number for None."""
    random, first = generator(seed, "phones of graphs"), 0
    while first < total:
        count = size if size is not None else int(random.integers(RANDOM[0], RANDOM[1] + 1))
        yield slice(first, min(first + count, total))
        first += count


def phones(order: Order) -> Result:
    """The same phones in graphs of one, of a thousand, and of a random number as the paper validates."""
    details: dict[str, list[dict[str, float]]] = {}
    for case in _cases(order):
        task, modules = case.trained()
        whole, kept = predictor(task, modules), cached_predictor(task, modules)
        survey = task.world.survey(PHONES[order.scale], part="test")
        batch = phones_of(survey)
        together = whole(batch).double().numpy()
        for size in (*GRAPHS, None):
            parts = list(_cut(len(survey), size, case.seed))
            scores = np.concatenate([whole(_rows(batch, part)).double().numpy() for part in parts])
            each = [metrics(scores[part], survey.rows(part), task.settings.threshold_db) for part in parts]
            found = metrics(scores, survey, task.settings.threshold_db)
            cached = np.concatenate([kept(_rows(batch, part)).double().numpy() for part in parts])
            found["difference"] = float(np.abs(np.stack([scores, cached]) - together).max())
            for name in ("precision", "recall"):
                found[f"{name}_between_graphs"] = float(np.std([one[name] for one in each]))
            seconds = _seconds({"whole": whole, "kept": kept}, _rows(batch, parts[0]))
            found |= {f"{name}_us": 1e6 * value / len(batch.master[parts[0]]) for name, value in seconds.items()}
            details.setdefault(_name(size), []).append(found)
        order.log(f"deployment {case.seed}")
    shown = ("precision", "recall", "auc", "average_precision", "precision_between_graphs", "recall_between_graphs")
    rows: list[list[Any]] = [
        [name, *(spelled(each, metric) for metric in shown), f"{max(one['difference'] for one in each):.1g}",
         *(f"{mean_and_spread(each, f'{which}_us')[0]:,.1f}" for which in ("whole", "kept"))]
        for name, each in details.items()
    ]  # fmt: skip
    return Result(
        title=f"The number of phones at validation: the paper's network read literally, {cells(order)[0][0]} access "
        f"points, {order.data or 'simulated'}, {len(_cases(order))} deployments, mean ± spread",
        columns=["phones in a graph", *(name.replace("_", " ") for name in shown),
                 "largest difference of a probability", "us a phone", "us a phone, access points cached"],
        rows=rows,
        notes=[
            f"The same {PHONES[order.scale]:,} fresh phones in every row, cut into graphs; differences, of whole and "
            "cached predictions, are to all of them in one graph. 'between graphs' is the standard deviation of a "
            "graph's own precision or recall.",
            f"The paper says that the number is random and not how; here: uniform from {RANDOM[0]} to {RANDOM[1]}.",
            "Processor time of one thread, in turns; of a random number, its first graph.",
        ],
        details=details,
    )  # fmt: skip


def _name(size: int | None) -> str:
    return f"random, {RANDOM[0]} to {RANDOM[1]}" if size is None else str(size)


def _rows(batch: Phones, part: slice) -> Phones:
    return Phones(*(leaf[part] for leaf in batch))


def _seconds(calls: dict[str, Predict], batch: Phones, repeats: int = 1) -> dict[str, float]:
    """Several calls in a row: one after a large network finds nothing of its own in the caches."""
    every: dict[str, Callable[[], object]] = {name: partial(call, batch) for name, call in calls.items()}
    return interleaved_seconds(every, rounds=9, repeats=repeats)


def cached_settings(order: Order) -> dict[str, Any]:
    """Networks of which sizes, and how many phones at a time."""
    return {
        "access_points": list(SIZES[order.scale]), "phones": [1, TOGETHER], "candidates": 10, "weights": "random",
        "seed": 0, "side_m": "100 sqrt(L)",
    }  # fmt: skip


def cached(order: Order) -> Result:
    """What keeping the access points' embeddings saves, and what more access points cost each selector."""
    refuse_data(order, "networks of many sizes are simulated")
    rows: list[list[Any]] = []
    details: dict[str, dict[str, float]] = {}
    for size in SIZES[order.scale]:
        found = details[str(size)] = _costs(size)
        cells_of = (f"{name} {count}" for count in (1, TOGETHER) for name in ("whole", "cached", "local", "nearest"))
        points = f"{1e3 * found['access points']:.2f}"
        rows.append([size, f"{found['weights']:,.0f}", points,
                     *(f"{1e6 * found[name]:,.1f}" for name in cells_of)])  # fmt: skip
        order.log(" | ".join(map(str, rows[-1])))
    who = ("paper's", "paper's, cached", "local", "nearest 3")
    return Result(
        title="Access-point embeddings cached at inference, one thread, random weights, 10 candidates",
        columns=["access points", "weights of the paper's network",
                 "ms for the access points",
                 *(f"{name}, {count} at a time" for count in (1, TOGETHER) for name in who)],
        rows=rows,
        notes=[
            "Microseconds of processor time a phone, in turns, medians. Speeds do not depend on the weights' values.",
            "'paper's' computes the embeddings of all access points with every prediction; cached, once.",
        ],
        details=details,
    )  # fmt: skip


def _costs(size: int) -> dict[str, float]:
    """Processor seconds a phone."""
    settings = {"access_points": size, "side_m": 100.0 * size**0.5, "shadowing": "spectral", "train_phones": 1000}
    task = CellFree(Settings(**settings, model="sage-literal"))  # type: ignore[arg-type]
    small = CellFree(Settings(**settings), world=task.world)  # type: ignore[arg-type]
    modules = fresh_modules(task, 0)
    nearest, net = Nearest(3).fit(task.world, survey=task.survey("train")), modules["net"]
    calls: dict[str, Predict] = {
        "whole": predictor(task, modules),
        "cached": cached_predictor(task, modules),
        "local": predictor(small, fresh_modules(small, 0)),
        "nearest": lambda phones: torch.from_numpy(nearest.scores(*(leaf.numpy() for leaf in task.inputs(phones)))),
    }
    batch, found = phones_of(task.survey("train")), {"weights": float(sum(p.numel() for p in net.parameters()))}
    graph = [task.constants[name] for name in ("features", "neighbours", "candidates")]
    repeats = 20 if size <= 200 else 5
    with torch.no_grad():
        assert isinstance(net, Sage)
        points: Callable[[], object] = partial(net.access_points, *graph)
        found["access points"] = interleaved_seconds({"": points}, repeats=repeats)[""]
    for count in (1, TOGETHER):
        seconds = _seconds(calls, _rows(batch, slice(count)), repeats)
        found |= {f"{name} {count}": value / count for name, value in seconds.items()}
    return found
