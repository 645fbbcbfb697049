"""The pruning that the paper announces and never specifies: remove the least robustly useful features, round by round.

A hardened network loses half of its features each round, row and column, and is trained on adversarially. The same is
done by plain usefulness, by magnitude and at random, so that all four stand at equal sizes.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Any

from fewer.pruning.features.shrink import MEASURES
from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.vision.studies.capacity import percent
from fewer.systems.vision.studies.light.rivals import run_features
from fewer.systems.vision.studies.measure import Row
from fewer.systems.vision.studies.pieces import run_piece
from fewer.systems.vision.studies.place import Place, data_in_words, expect_pieces, where
from fewer.systems.vision.studies.recipe import Recipe, cured

__all__ = ["SHORT", "shrink_base", "shrinking", "train_shrinking"]

SHORT = {"quick": (60, 50), "full": (1500, 500), "paper": (1500, 500)}  # steps a round, images a feature


def shrink_base(scale: str) -> Recipe:
    """The hardened networks that lose features."""
    quick = scale == "quick"
    return cured(
        "shrink-base",
        "cnn1",
        steps=400 if quick else 6000,
        batch=128,
        validation=0.1,
        seeds=(0,) if quick else (0, 1, 2),
    )


def train_shrinking(scale: str, place: Place, seeds: tuple[int, ...] = ()) -> tuple[list[Row], list[Row]]:
    """The networks with all features, and what is left of them after every round; of all seeds, or of some."""
    steps, samples = SHORT[scale]
    base = shrink_base(scale)
    base = dataclasses.replace(base, seeds=seeds or base.seeds)
    whole = run_piece(base, place)
    return whole, run_features(base, steps, place, samples=samples, name="shrink", tolerance=math.inf)


def shrinking(order: Order) -> Result:
    """Clean and attacked accuracy of ever smaller networks, for four ways of choosing the features that stay."""
    place = where(order)
    whole, smaller = train_shrinking(order.scale, place)
    expect_pieces(smaller, place)
    most = 2 * max(row["features"] for row in smaller)
    points = [{**row, "method": measure, "features": most} for measure in MEASURES for row in whole] + smaller
    return Result(
        title=f"Hardened networks that lose features, {data_in_words(order)}, eps 0.3: clean / PGD-40 accuracy in "
        "percent, mean ± deviation over seeds",
        columns=["features", "weights", "seeds", *MEASURES],
        rows=_rows(points),
        notes=[
            "The paper announces the method and gives no numbers.",
            f"Each round halves the features and trains {SHORT[order.scale][0]} adversarial steps; weights without "
            "biases.",
        ],
        figures={"vision-shrink.png": _draw(points)},
        details={"points": points},
    )


def _of(points: Sequence[Row], measure: str, features: int) -> list[Row]:
    return [point for point in points if point["method"] == measure and point["features"] == features]


def _rows(points: Sequence[Row]) -> list[list[Any]]:
    sizes = sorted({(point["features"], point["weights"]) for point in points}, reverse=True)
    return [
        [features, weights, len(_of(points, MEASURES[0], features))]
        + [" / ".join(percent(_of(points, m, features), key) for key in ("clean", "pgd40")) for m in MEASURES]
        for features, weights in sizes
    ]


def _draw(points: Sequence[Row]) -> bytes:
    figure, axes = pyplot().subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharex=True)
    sizes = sorted({point["features"] for point in points}, reverse=True)
    for measure in MEASURES:
        for place, key in zip(axes, ("clean", "pgd40")):
            means = [100 * statistics.fmean(point[key] for point in _of(points, measure, size)) for size in sizes]
            place.plot(sizes, means, "o-", label=measure)
    for place, title in zip(axes, ("clean", "PGD-40 in a ball of 0.3")):
        place.set(xscale="log", xlabel="features left", ylabel="accuracy %", title=title)
    axes[0].invert_xaxis()  # both: the axis is shared
    axes[0].legend(title="features kept by")
    return png(figure)
