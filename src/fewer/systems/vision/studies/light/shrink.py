"""The pruning that the paper announces and never specifies: remove the least robustly useful features, round by round.

A hardened network loses half of its features each round, row and column, and is trained on adversarially. The same is
done by plain usefulness, by magnitude and at random, so that all four stand at equal sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Training
from fewer.core.engines.optimizer import Optimizer
from fewer.pruning.features.shrink import MEASURES, Shrinking, shrink
from fewer.pruning.features.usefulness import Reach
from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.vision.studies.training import accuracies, device, mnist, trained
from fewer.systems.vision.task.task import Settings, Vision

__all__ = ["shrinking"]

SCALES = {"quick": (400, 60, 50), "full": (6000, 1500, 500)}  # hardening steps, steps a round, images a feature
SEEDS = {"quick": (0,), "full": (0, 1, 2)}
LEAST = 7
HARDENING = "pgd:0.3,steps=3,step=0.15,ramp=0.5"
TUNING = "pgd:0.3,steps=3,step=0.15,ramp=0"
Point = dict[str, Any]


def shrinking(order: Order) -> Result:
    """Clean and attacked accuracy of ever smaller networks, for four ways of choosing the features that stay."""
    scale, log = order.scale, order.log
    steps, tuning, samples = SCALES[scale]
    task, on = Vision(Settings(network="cnn1", data=mnist(scale))), device(scale)
    points: list[Point] = []
    for seed in SEEDS[scale]:
        whole = trained(task, steps=steps, hardening=HARDENING, seed=seed, on=on, log=log)
        start = _point(task, whole, seed)
        points += [{"measure": measure, **start} for measure in MEASURES]
        training = Training(steps=tuning, batch=128, optimizer=Optimizer(lr=1e-3, decay_from=0.5), device=on)
        for measure in MEASURES:
            settings = Shrinking(
                measure=measure, share=0.5, least=LEAST, samples=samples, reach=Reach(step=0.1, steps=3), seed=seed
            )
            for stage in shrink(harden(task, TUNING), whole, settings, training=training):
                points.append({"measure": measure, **_point(task, stage.modules, seed)})
                log(str(points[-1]))
    return Result(
        title="Hardened networks that lose features: clean and PGD-10 accuracy in %",
        columns=["features", "weights", *MEASURES],
        rows=_rows(points),
        notes=[
            f"Mean over {len(SEEDS[scale])} seed(s); the paper announces the method and gives no numbers.",
            f"Each round halves the features and trains {tuning} adversarial steps; weights without biases.",
        ],
        figures={"vision-shrink.png": _draw(points)},
        details={"points": points},
    )


def _point(task: Vision, modules: Mapping[str, nn.Module], seed: int) -> Point:
    clean, attacked = accuracies(task, modules)
    net = modules["net"]
    weights = sum(p.numel() for name, p in net.named_parameters() if name.endswith("weight"))
    features = net.get_parameter("head.weight").shape[1]
    return {"seed": seed, "features": features, "weights": weights, "clean": clean, "pgd10": attacked}


def _mean(points: list[Point], key: str) -> float:
    return float(100 * sum(point[key] for point in points) / len(points))


def _grouped(points: list[Point], measure: str) -> dict[tuple[int, int], list[Point]]:
    sizes = sorted({(point["features"], point["weights"]) for point in points}, reverse=True)
    return {
        size: [p for p in points if (p["features"], p["weights"]) == size and p["measure"] == measure]
        for size in sizes
    }  # fmt: skip


def _rows(points: list[Point]) -> list[list[Any]]:
    groups = {measure: _grouped(points, measure) for measure in MEASURES}
    return [
        [*size, *(f"{_mean(groups[m][size], 'clean'):.1f} / {_mean(groups[m][size], 'pgd10'):.1f}" for m in MEASURES)]
        for size in groups[MEASURES[0]]
    ]


def _draw(points: list[Point]) -> bytes:
    figure, axes = pyplot().subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharex=True)
    for measure in MEASURES:
        groups = _grouped(points, measure)
        for place, key in zip(axes, ("clean", "pgd10")):
            place.plot(
                [size[0] for size in groups], [_mean(part, key) for part in groups.values()], "o-", label=measure
            )
    for place, title in zip(axes, ("clean", "PGD-10 in a ball of 0.3")):
        place.set(xscale="log", xlabel="features left", ylabel="accuracy %", title=title)
    axes[0].invert_xaxis()  # both: the axis is shared
    axes[0].legend(title="features kept by")
    return png(figure)
